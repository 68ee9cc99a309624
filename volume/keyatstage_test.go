package volume_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// keylessRequests are encrypted volumes of every kind that are requested without their passphrase.
func keylessRequests() map[string]drivebay.VolumeRequest {
	out := encryptedRequests()
	for name, r := range out {
		r.Secrets, r.KeyAtStage = nil, true
		out[name] = r
	}
	return out
}

// TestKeyAtStage is the life of encrypted volumes that get their passphrase when they are staged first.
func TestKeyAtStage(t *testing.T) {
	t.Parallel()
	for name, r := range some(keylessRequests()) {
		headers, log := t.TempDir(), &bytes.Buffer{}
		opt := volume.Options{Headers: headers, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		onMachine(t, smallDrives(), opt, func(s *stand) {
			var said []error
			fails := func(what string, want, err error) {
				s.Helper()
				if said = append(said, err); !errors.Is(err, want) {
					s.Errorf("%s: %s: %v", name, what, err)
				}
			}
			v := s.make(name, r)
			if !v.AwaitsKey || !v.Encrypted() || v.CSIStatus != drivebay.CSICreated || s.contains("LUKS\xba\xbe") {
				s.Errorf("%s: made: %+v", name, v)
			}
			s.start()
			if is := s.of(v); is.Condition.Abnormal() || is.OperationalStatus != drivebay.Operative {
				s.Errorf("%s: it is %v, %v", name, is.OperationalStatus, is.Condition)
			}
			if again := s.make(name, r); again.LUKSUUID != v.LUKSUUID || again.Location.Instance != v.Location.Instance || !again.AwaitsKey {
				s.Errorf("%s: requested again: %+v", name, again)
			}
			fails("another passphrase", drivebay.ErrRefused, s.e.RotateKey(s.Context(), drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(rightKey), New: secrets(wrongKey)}))
			if v.Location.Kind == drivebay.LocationThin {
				_, err := s.e.CreateSnapshot(s.Context(), "snapshot", v.ID)
				fails("a snapshot", drivebay.ErrRefused, err)
			}
			if r.Class.Backing != drivebay.BackingDrive {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 5 << 28})
				s.must(err)
			}
			fails("staged without a key", drivebay.ErrInvalid, s.stage(v))
			if !s.of(v).AwaitsKey {
				s.Errorf("%s: it does not await its passphrase", name)
			}
			s.must(s.stage(v, with(rightKey)))
			dev, open := s.plain(v)
			if is := s.of(v); !open || is.AwaitsKey || s.sizeOf(dev) != is.Size || is.CSIStatus != drivebay.CSIVolumeReady || is.Work != "" {
				s.Fatalf("%s: staged: unlocked %v, %+v", name, open, is)
			}
			const text = "all that I know!"
			if v.Mode != drivebay.ModeFS && s.first(dev, "") != strings.Repeat("\x00", 16) {
				s.Errorf("%s: it does not begin with zeros", name)
			}
			if s.first(dev, text); s.contains(text) {
				s.Errorf("%s: it is written in plain", name)
			}
			s.must(s.unstage(v))
			s.start()
			fails("staged with another key", drivebay.ErrSecret, s.stage(v, with(wrongKey)))
			s.must(s.stage(v, with(rightKey)))
			if dev, _ := s.plain(v); s.first(dev, "") != text {
				s.Errorf("%s: its data are gone", name)
			}
			s.must(s.unstage(v))
			s.nowhere(headers, log.String(), said)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()

			v = s.make(name, r) // never used
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}

// TestKeyAtStageKilled interrupts the creation and the first stage after each step. A later stage begins again, also with
// another passphrase, until the volume is finished. A volume that is finished is never formatted again.
func TestKeyAtStageKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "a partition", "a linear volume"} {
		r := keylessRequests()[name]
		r.Name, r.Size.Required = name, 1<<30
		k := &killer{}
		for after, all := 1, false; !all && !t.Failed(); after += everyNth {
			k.anew(after)
			onMachine(t, smallDrives(), volume.Options{After: k.step, Headers: t.TempDir()}, func(s *stand) {
				v, err := s.e.CreateVolume(s.Context(), r)
				if s.restarted(err) {
					if v, err = s.e.CreateVolume(s.Context(), r); err != nil {
						s.Fatalf("%s, after %q: %v", name, k.steps()[after-1], err)
					}
				}
				all = !s.restarted(s.stage(v, with(rightKey))) && len(k.steps()) < after
				k.arm(0)
				if is := s.record(v); is.Work != nil {
					s.Errorf("%s, after %q: work is left: %v", name, k.steps()[min(after, len(k.steps()))-1], is.Work)
				}
				key := wrongKey
				if !s.of(v).AwaitsKey || k.steps()[min(after, len(k.steps()))-1] == "finish" {
					key = rightKey
				}
				if err := s.stage(v, with(key)); err != nil {
					s.Fatalf("%s, after %q: %v", name, k.steps()[min(after, len(k.steps()))-1], err)
				}
				if dev, _ := s.plain(v); v.Mode != drivebay.ModeFS && s.first(dev, "") != strings.Repeat("\x00", 16) {
					s.Errorf("%s: it does not begin with zeros", name)
				}
				s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		}
	}
}

// TestKeyAtStageOlderRecord: a record from before the first stage does not make the engine format the volume again.
func TestKeyAtStageOlderRecord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "a linear volume"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make(name, keylessRequests()[name])
			old := s.record(v)
			const text = "all that I know!"
			s.must(s.stage(v, with(rightKey)))
			dev, _ := s.plain(v)
			s.first(dev, text)
			s.must(s.unstage(v), s.st.PutVolume(old))
			s.start()
			if err := s.retried(func() error { return s.stage(v, with(wrongKey)) }); !errors.Is(err, drivebay.ErrSecret) {
				s.Errorf("%s: staged with another key: %v", name, err)
			}
			s.must(s.retried(func() error { return s.stage(v, with(rightKey)) })) // what the older record differs in is taken from the drive meanwhile
			if dev, _ := s.plain(v); s.first(dev, "") != text {
				s.Errorf("%s: its data are gone", name)
			}
		})
	}
}

// TestKeyAtStageOlderRecordMoves: a record from before the first stage does not make the engine format the copy of the volume
// either, after the volume has left its drive.
func TestKeyAtStageOlderRecordMoves(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "ext4 on a partition", "a linear volume"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make(name, keylessRequests()[name])
			old := s.record(v)
			const text = "all that I know!"
			s.must(s.stage(v, with(rightKey)))
			if dev, _ := s.plain(v); v.Mode != drivebay.ModeFS {
				s.first(dev, text)
			}
			s.must(s.unstage(v), s.st.PutVolume(old))
			s.start()
			s.lead(v, drivebay.LeaveRelease)
			s.until("the drive is released", func() bool {
				d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
				return d.Usage == drivebay.UsageReleased
			})
			if err := s.stage(v, with(wrongKey)); !errors.Is(err, drivebay.ErrSecret) {
				s.Fatalf("%s: staged with another key: %v", name, err)
			}
			s.must(s.stage(v, with(rightKey)))
			if dev, _ := s.plain(v); v.Mode != drivebay.ModeFS && s.first(dev, "") != text {
				s.Errorf("%s: its data are gone", name)
			}
		})
	}
}

// TestKeyAtStageFound: a volume that was never used and whose record is lost is replaced by what the next request asks for.
func TestKeyAtStageFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"xfs on a partition", "a linear volume"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			r := keylessRequests()[name]
			v := s.make(name, r)
			s.forget()
			again := s.make(name, r)
			if again.LUKSUUID == v.LUKSUUID || again.Size != v.Size || !again.AwaitsKey || len(s.e.Volumes().Volumes) > 1 {
				s.Errorf("%s: made %+v\nmade again %+v", name, v, again)
			}
			s.must(s.stage(again, with(rightKey)), s.unstage(again), s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}

// TestKeyAtStageMoves: a volume that awaits its passphrase leaves its drive like any other one.
func TestKeyAtStageMoves(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "a linear volume"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make(name, keylessRequests()[name])
			s.lead(v, drivebay.LeaveRelease)
			s.until("the drive is released", func() bool {
				d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
				return d.Usage == drivebay.UsageReleased
			})
			is := s.of(v)
			if is.Location.Drives[0] == v.Location.Drives[0] || !is.AwaitsKey {
				s.Errorf("%s: it is %+v", name, is.Volume)
			}
			s.must(s.stage(v, with(rightKey)))
			if dev, open := s.plain(v); !open || s.sizeOf(dev) != is.Size {
				s.Errorf("%s: unlocked %v", name, open)
			}
			s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}

// TestKeyAtStageWhileListed: a volume that awaits its passphrase looks unfinished in each listing. The reads that tell whether it is half removed
// refuse no call for it.
func TestKeyAtStageWhileListed(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", keylessRequests()["a partition"])
		s.inject(v.Location.Drives[0], "slow")
		for range 60 {
			if err := s.stage(v, with("")); errors.Is(err, drivebay.ErrPending) {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(time.Minute)
	})
}
