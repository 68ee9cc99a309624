package volume_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestScrub: a filesystem is called corrupted when three checks agree while it is
// mounted, or one while it is not; the verdict outlives us, and is taken back.
func TestScrub(t *testing.T) {
	for _, fs := range drivebay.FSTypes {
		for _, mounted := range []bool{true, false} {
			onStand(t, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{FSType: fs, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}})
				if mounted {
					s.must(s.stage(v), s.publish(v, "pod"))
				}
				scrub := func(wait time.Duration) string {
					s.Helper()
					s.must(s.e.ScrubVolume(s.Context(), v.ID))
					time.Sleep(wait)
					return reasons(s.of(v).Condition)
				}
				if got := scrub(time.Minute); got != "" || s.of(v).Facts.FS.Scrub == nil {
					s.Errorf("%s, sound: %q, %+v", fs, got, s.of(v).Facts.FS.Scrub)
				}
				d := s.device(v)
				s.inject(d, "fs-corrupt")
				if got := scrub(30 * time.Second); strings.Contains(got, "FilesystemCorruption") == mounted {
					s.Errorf("%s, mounted %v, after one check: %q", fs, mounted, got)
				} else if mounted && s.of(v).Work != "scrub" {
					s.Errorf("%s: under way is %q", fs, s.of(v).Work)
				}
				time.Sleep(5 * time.Minute)
				is := s.of(v)
				if is.Condition.Severity() != drivebay.SeverityDataLoss || is.Facts.FS.Scrub.Mounted != mounted || is.Facts.FS.Scrub.Text == "" {
					s.Errorf("%s, mounted %v: %s, %+v", fs, mounted, is.Condition.Message(), is.Facts.FS.Scrub)
				}
				s.start()
				if got := reasons(s.of(v).Condition); !strings.Contains(got, "FilesystemCorruption") {
					s.Errorf("%s, after a restart: %q", fs, got)
				}
				s.inject(d, "heal")
				if got := scrub(time.Minute); strings.Contains(got, "FilesystemCorruption") {
					s.Errorf("%s, repaired: %q", fs, got)
				}
			})
		}
	}
}

// device is the kernel's name of a volume's device.
func (s *stand) device(v drivebay.Volume) string {
	s.Helper()
	parts, err := s.sim.ReadDir("sys/block/" + s.drive(v).Name)
	s.must(err)
	for _, name := range parts {
		text, _ := s.sim.ReadFile("sys/block/" + s.drive(v).Name + "/" + name + "/uevent")
		if strings.Contains(string(text), v.ID) {
			return name
		}
	}
	s.Fatalf("volume %s has no device", v.ID)
	return ""
}

// TestScrubsInTheBackground: once a week each, one after the other; at once when
// the kernel meets errors.
func TestScrubsInTheBackground(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{Tick: 3 * time.Minute}, func(s *stand) {
		a, b := s.make("a", drivebay.VolumeRequest{}), s.make("b", drivebay.VolumeRequest{})
		s.must(s.stage(a), s.stage(b))
		time.Sleep(8 * 24 * time.Hour)
		for _, v := range []drivebay.Volume{a, b} {
			if r := s.record(v).Scrub; r == nil || r.Corrupt != 0 || time.Since(r.At) > 8*24*time.Hour {
				s.Errorf("after a week: %+v", r)
			}
		}
		s.inject(staging(a), "fs-corrupt")
		s.inject(staging(a), "fs-errors")
		time.Sleep(10 * time.Minute)
		if got := s.of(a).Condition; got.Severity() != drivebay.SeverityDataLoss {
			s.Errorf("on suspicion: %s", got.Message())
		}
		s.must(s.unstage(a))
	})
}

func TestScrubRefuses(t *testing.T) {
	onStand(t, func(s *stand) {
		slow := s.make("slow", drivebay.VolumeRequest{})
		s.inject(s.drive(slow).ID, "slow")
		s.must(s.e.ScrubVolume(s.Context(), slow.ID))
		if err := s.e.ScrubVolume(s.Context(), slow.ID); !errors.Is(err, drivebay.ErrPending) {
			s.Errorf("checked twice at once: %v", err)
		}
		s.inject(s.drive(slow).ID, "heal")
		b := s.make("b", drivebay.VolumeRequest{Block: true})
		if err := s.e.ScrubVolume(s.Context(), b.ID); !errors.Is(err, drivebay.ErrNoSupport) {
			s.Errorf("a device: %v", err)
		}
		r := partitionOf(1 << 30)
		r.Block = false
		r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
		if err := s.e.ScrubVolume(s.Context(), s.make("locked", r).ID); !errors.Is(err, drivebay.ErrRefused) {
			s.Errorf("a locked volume: %v", err)
		}
		if err := s.e.ScrubVolume(s.Context(), "nobody"); !errors.Is(err, drivebay.ErrNotFound) {
			s.Errorf("nobody: %v", err)
		}
	})
}

// hangingOpen is a machine on which open(2) of one device does not return.
type hangingOpen struct {
	*hostsim.Machine
	dev  atomic.Pointer[string]
	free chan struct{}
}

func (m *hangingOpen) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	if hangs := m.dev.Load(); hangs != nil && *hangs == dev {
		<-m.free
	}
	return m.Machine.OpenDisk(ctx, dev, alone)
}

// TestScrubOpenHangs: a device whose open(2) does not return delays neither the checks of other volumes nor
// the end of the daemon.
func TestScrubOpenHangs(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(2), volume.Options{}, func(s *stand) {
		r := requests()["ext4 on a partition"]
		r.Size.Required = 6 << 30 // no two on one drive
		a := s.make("a", r)
		b := s.make("b", r)
		if a.Location.Drives[0] == b.Location.Drives[0] {
			t.Fatal("both volumes are on one drive")
		}
		m := &hangingOpen{Machine: s.sim, free: make(chan struct{})}
		s.machine = m
		s.start()
		dev := "/dev/" + s.device(a)
		m.dev.Store(&dev)
		s.must(s.e.ScrubVolume(s.Context(), a.ID))
		time.Sleep(10 * time.Minute)
		s.must(s.e.ScrubVolume(s.Context(), b.ID))
		time.Sleep(time.Minute)
		if s.of(b).Facts.FS.Scrub == nil {
			t.Error("the other volume is not checked")
		}
		s.stop()
		s.stop = func() {}
		close(m.free)
	})
}
