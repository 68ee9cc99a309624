package volume_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestEncryptedKilled cuts the making and the deletion of an encrypted volume short
// after each step. Without its key nobody finishes one, with another key it is made
// anew: it was never handed out.
func TestEncryptedKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "a partition", "a linear volume"} {
		r := encryptedRequests()[name]
		r.Name, r.Size.Required = name, 1<<30
		k := &killer{}
		for after, all := 1, false; !all && !t.Failed(); after += everyNth {
			k.anew(after)
			onMachine(t, smallDrives(), volume.Options{After: k.step, Headers: t.TempDir()}, func(s *stand) {
				r := r
				v, err := s.e.CreateVolume(s.Context(), r)
				if s.restarted(err) {
					if is := s.e.Volumes().Volumes; len(is) != 1 || is[0].CSIStatus == drivebay.CSICreated && k.steps()[after-1] != "finish" {
						s.Fatalf("%s, after %q: without its key it is %+v", name, k.steps()[after-1], is)
					}
					if name == "a partition" && k.steps()[after-1] == "zero" { // zeros of one key are noise to another
						s.write(s.e.Volumes().Volumes[0].Volume, []byte("noise"), 17<<20)
					}
					r.Secrets = secrets(wrongKey) // from now on it is the right one
					if v, err = s.e.CreateVolume(s.Context(), r); err != nil {
						s.Fatalf("%s, after %q: %v", name, k.steps()[after-1], err)
					}
				}
				key := r.Secrets[drivebay.SecretPassphrase]
				if k.steps()[min(after, len(k.steps()))-1] == "finish" {
					key = rightKey
				}
				if err := s.stage(v, with(key)); err != nil {
					s.Errorf("%s, after %q: %v", name, k.steps()[min(after, len(k.steps()))-1], err)
				}
				if dev, _ := s.plain(v); v.Mode != drivebay.ModeFS && s.first(dev, "") != strings.Repeat("\x00", 16) {
					s.Errorf("%s: it does not begin with zeros", name)
				}
				s.must(s.unstage(v))
				all = !s.restarted(s.e.DeleteVolume(s.Context(), v.ID)) && len(k.steps()) < after
				if _, there := s.e.Volumes().Get(v.ID); there || s.contains("LUKS\xba\xbe") {
					s.Errorf("%s: removed: listed %v", name, there)
				}
				s.blank()
			})
		}
	}
}

// TestEncryptedFound: what the store has forgotten of an encrypted volume its
// header and its partition or tags still say.
func TestEncryptedFound(t *testing.T) {
	t.Parallel()
	spec := smallDrives()
	spec.Drives[0].Count = 6
	onMachine(t, spec, volume.Options{Headers: t.TempDir()}, func(s *stand) {
		made := map[string]drivebay.Volume{}
		for name, r := range encryptedRequests() {
			if r.Class.Backing != drivebay.BackingDrive {
				made[name] = s.make(name, r)
			}
		}
		used := made["xfs on a partition"]
		s.must(s.stage(used, with(rightKey)))
		s.forget()
		for name, v := range made {
			is := s.of(v)
			if is.Size != v.Size || is.Mode != v.Mode || is.FSType != v.FSType || is.LUKSUUID != v.LUKSUUID || is.CSIStatus == drivebay.CSIFailed {
				s.Errorf("%s: made %+v\nfound %+v", name, v, is.Volume)
			}
			if again := s.make(name, encryptedRequests()[name]); again.LUKSUUID != v.LUKSUUID {
				s.Errorf("%s: asked for again: %+v", name, again)
			}
			if err := s.stage(v, with(wrongKey)); !errors.Is(err, drivebay.ErrSecret) {
				s.Errorf("%s: staged with another key: %v", name, err)
			}
			s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		}
		s.blank()
	})
}

// TestEncryptedStale: what a stage that crashed has left unlocked is closed at the next start,
// and what lies over a drive that came back as another device is made anew.
func TestEncryptedStale(t *testing.T) {
	t.Parallel()
	r := encryptedRequests()["ext4 on a partition"]
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", r)
		s.must(s.stage(v, with(rightKey)))
		s.must(s.sim.UnmountBehind(staging(v)))
		r := s.record(v) // as before it was mounted
		r.Volume.Publications, r.Volume.CSIStatus = nil, drivebay.CSICreated
		s.must(s.st.PutVolume(r))
		s.start()
		if _, open := s.plain(v); open || s.of(v).CSIStatus != drivebay.CSICreated {
			s.Errorf("started again: unlocked %v, %v", open, s.of(v).CSIStatus)
		}
		s.must(s.stage(v, with(rightKey)))
		s.must(s.unstage(v))
		other := s.make("other", drivebay.VolumeRequest{})
		s.must(s.stage(other, func(r *drivebay.StageRequest) { r.Path = staging(v) }))
		if err := s.stage(v, with(rightKey)); !errors.Is(err, drivebay.ErrRefused) {
			s.Errorf("staged where another is mounted: %v", err)
		}
		if _, open := s.plain(v); open {
			s.Error("a stage that failed has left it unlocked")
		}
		d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
		out, err := s.sim.RunInput(s.Context(), []byte("other"), "cryptsetup", "close", "drivebay-"+v.ID)
		if exit, ok := errors.AsType[*host.ExitError](err); !ok || exit.Code != 4 {
			s.Errorf("closing what is closed on %s: %s, %v", d.Name, out, err)
		}
	})
}

// TestCannotEncrypt: a machine that cannot encrypt says so, and makes nothing.
func TestCannotEncrypt(t *testing.T) {
	t.Parallel()
	for _, lacks := range []string{"cryptsetup", "dm-crypt"} {
		spec := smallDrives()
		spec.Without = []string{lacks}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			r := encryptedRequests()["a partition"]
			r.Name = "v"
			_, err := s.e.CreateVolume(s.Context(), r)
			if !errors.Is(err, drivebay.ErrNoSupport) || !strings.Contains(err.Error(), lacks) {
				s.Errorf("without %s: %v", lacks, err)
			}
			if _, err := s.e.Capacity(s.Context(), r.Class); !errors.Is(err, drivebay.ErrNoSupport) {
				s.Errorf("without %s: capacity: %v", lacks, err)
			}
			s.blank()
		})
	}
}

// TestCanEncryptLater: who did not answer in time is asked again.
func TestCanEncryptLater(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		class := encryptedRequests()["a partition"].Class
		late, cancel := context.WithCancel(s.Context())
		cancel()
		if _, err := s.e.Capacity(late, class); !errors.Is(err, context.Canceled) || errors.Is(err, drivebay.ErrNoSupport) {
			s.Errorf("asked too late: %v", err)
		}
		if c, err := s.e.Capacity(s.Context(), class); err != nil || c.Largest == 0 {
			s.Errorf("asked again: %+v, %v", c, err)
		}
	})
}

// TestEncryptedCapacity: what is said of the room for encrypted volumes is exact.
func TestEncryptedCapacity(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Size: "20GB"}}}, volume.Options{}, func(s *stand) {
		for name, r := range encryptedRequests() {
			if !r.Block {
				continue
			}
			for range 2 {
				s.largest(name, r)
			}
			for _, v := range s.e.Volumes().Volumes {
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			}
		}
	})
}
