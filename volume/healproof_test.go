package volume_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

const freshMount = "mount a failed filesystem again"

// reported heals a volume, and is why its one repair was not done.
func (s *stand) reported(v drivebay.Volume) string {
	s.Helper()
	report, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID})
	s.must(err)
	if len(report.Steps) != 1 {
		s.Fatalf("steps: %+v", report.Steps)
	}
	return report.Steps[0].Failed
}

// TestHealReadsFirst: a filesystem whose disk does not answer a read is not unmounted
// anywhere, and the report says why.
func TestHealReadsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*stand, drivebay.Volume)
		want  string
	}{
		"no read": {func(s *stand, v drivebay.Volume) { s.inject(v.Location.Drives[0], "eio") }, "input/output error|Error reading device"},
		"none of the filesystem": {func(s *stand, v drivebay.Volume) {
			s.dataSectors(v, 0, 1<<29)
		}, "input/output error"},
		"not its superblock":  {func(s *stand, v drivebay.Volume) { s.dataSectors(v, 0, 4096) }, "input/output error"},
		"not its descriptors": {func(s *stand, v drivebay.Volume) { s.dataSectors(v, 64<<10, 4096) }, "input/output error"},
		"not its second half": {func(s *stand, v drivebay.Volume) { s.dataSectors(v, 1<<29, 1<<29) }, "input/output error"},
		"no answer":           {func(s *stand, v drivebay.Volume) { s.inject(v.Location.Drives[0], "hang") }, "no answer in time|does not answer"},
		"no write":            {func(s *stand, v drivebay.Volume) { s.inject(v.Location.Drives[0], "read-only") }, "takes no writes"},
	} {
		for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
			onStand(t, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Drives: drivebay.TypeNVMe, Backing: backing, Wipe: drivebay.WipeNone, FSType: "ext4"}})
				s.must(s.stage(v), s.publish(v, "pod"), s.publish(v, "reader", func(r *drivebay.PublishRequest) { r.ReadOnly = true }))
				time.Sleep(20 * time.Second) // the drive was read after its first partition, and is not asked again soon
				s.inject(staging(v), "fs-read-only")
				time.Sleep(3 * time.Second)
				c.fault(s, v)
				if name == "no write" {
					time.Sleep(30 * time.Second) // until the drive was looked at
				}
				if got := s.reported(v); !regexp.MustCompile(c.want).MatchString(got) {
					s.Errorf("%s, %s: the report says %q", name, backing, got)
				}
				for _, path := range []string{staging(v), target(v, "pod"), target(v, "reader")} {
					if n := len(s.mounts(path)); n != 1 {
						s.Errorf("%s, %s: %d mounts at %s", name, backing, n, path)
					}
				}
				s.inject(v.Location.Drives[0], "heal")
				time.Sleep(20 * time.Minute)
				if s.drive(v).Health == drivebay.HealthBad { // by the errors that were met
					return
				}
				if got := s.heal(v); got != freshMount {
					s.Errorf("%s, %s: when the disk answers again: %q", name, backing, got)
				}
				s.inUse(v, target(v, "pod"), false)
				s.inUse(v, target(v, "reader"), true)
			})
		}
	}
}

// dataSectors makes bytes of a volume unreadable, which is the first one on its drive.
func (s *stand) dataSectors(v drivebay.Volume, at, n uint64) {
	s.Helper()
	if v.Location.VG == "" {
		s.badSectors(v, at, n)
		return
	}
	text, err := s.sim.ReadFile("sys/class/block/" + s.drive(v).Name + "p1/start")
	s.must(err)
	var start uint64
	fmt.Sscan(string(text), &start)
	start += (17<<20 + at) / 512 // its physical volume begins with metadata
	s.must(s.sim.Inject(hostsim.Fault{Drive: s.drive(v).Serial, Fault: "unreadable", Args: hostsim.Args{"sector": fmt.Sprint(start), "n": fmt.Sprint(n / 512)}}))
}

// TestHealReadsReturned: mounts of a device that went stay as well while the drive that
// is back cannot be read.
func TestHealReadsReturned(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, encrypted := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				key := func(*drivebay.StageRequest) {}
				if encrypted {
					r.Class.Encryption, r.Secrets, key = drivebay.EncryptionLUKS2, secrets(rightKey), with(rightKey)
				}
				v := s.make(name, r)
				s.must(s.stage(v, key), s.publish(v, "pod"))
				var serials []string
				for _, id := range v.Location.Drives {
					serials = append(serials, s.serialOf(id))
					s.inject(id, "vanish")
				}
				time.Sleep(10 * time.Second)
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
				}
				time.Sleep(30 * time.Second)
				for _, id := range v.Location.Drives {
					s.inject(id, "eio")
				}
				want := 2
				if v.Mode != drivebay.ModeFS {
					want = 1
				}
				report, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: secrets(rightKey)})
				if err != nil || len(report.Steps) != 1 || !strings.Contains(report.Steps[0].Failed, "nothing was unmounted") || len(s.mounts(staging(v)))+len(s.mounts(target(v, "pod"))) != want {
					s.Errorf("%s, encrypted %v: %v, %+v", name, encrypted, err, report.Steps)
				}
			})
		}
	}
}

// TestHealPutsBack: what cannot be mounted anew after it was unmounted is put back, or the
// report says what is left.
func TestHealPutsBack(t *testing.T) {
	for fault, c := range map[string]struct {
		mounts int
		want   string
	}{
		"read-only": {2, "read-only"},
		"eio":       {0, "it is not mounted at"},
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Drives: drivebay.TypeNVMe, Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v), s.publish(v, "pod"))
			s.inject(staging(v), "fs-read-only")
			time.Sleep(3 * time.Second)
			s.must(s.sim.Inject(hostsim.Fault{Drive: s.drive(v).Serial, Fault: "slow", Args: hostsim.Args{"delay": "500ms"}}))
			over := make(chan string)
			go func() { over <- s.reported(v) }()
			for len(s.mounts(staging(v))) > 0 {
				time.Sleep(50 * time.Millisecond)
			}
			s.inject(v.Location.Drives[0], fault)
			got := <-over
			if !strings.Contains(got, c.want) {
				s.Errorf("%s: the report says %q", fault, got)
			}
			if n := len(s.mounts(staging(v))) + len(s.mounts(target(v, "pod"))); n != c.mounts {
				s.Errorf("%s: %d mounts: %s", fault, n, got)
			}
			s.inject(v.Location.Drives[0], "heal")
			time.Sleep(20 * time.Minute)
			if got := s.heal(v); strings.Contains(got, "!") || got == "" {
				s.Errorf("%s: healed by %q", fault, got)
			}
			s.inUse(v, target(v, "pod"), false)
		})
	}
}
