package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// journal are the causes of the events of a kind.
func (s *stand) journal(kind drivebay.EventKind) (out []string) {
	s.Helper()
	time.Sleep(time.Second) // they are written down together
	all, err := s.st.Events(0, 10000)
	s.must(err)
	for _, e := range all {
		if e.Kind == kind && e.Volume != "" {
			out = append(out, e.Cause)
		}
	}
	return out
}

// TestTend: what was unmounted by accident is mounted again without being asked,
// where that is the policy; what is not to be done so is said, once.
func TestTend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   func(*stand, drivebay.Volume)
		options []string
		healed  []string // in the journal, in this order
		not     string
	}{
		"nothing": {fault: func(*stand, drivebay.Volume) {}},
		"unmounted": {fault: func(s *stand, v drivebay.Volume) { s.inject(staging(v), "fs-unmount") },
			healed: []string{"mount the filesystem: ", "restore the bind mounts of pods: "}},
		"a path": {fault: func(s *stand, v drivebay.Volume) { s.must(s.sim.Unmount(s.Context(), place(target(v, "pod")))) },
			healed: []string{"restore the bind mounts of pods: "}},
		"read-only": {fault: func(s *stand, v drivebay.Volume) { s.inject(staging(v), "fs-read-only") },
			not: "mount a failed filesystem again: "},
		"with options": {fault: func(s *stand, v drivebay.Volume) { s.inject(staging(v), "fs-unmount") }, options: []string{"noatime"},
			not: "mount the filesystem: "},
	} {
		for _, policy := range []bool{true, false} {
			onMachine(t, fourDrives, volume.Options{Heal: policy}, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{})
				s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Options = c.options }), s.publish(v, "pod"))
				c.fault(s, v)
				time.Sleep(40 * time.Minute)
				healed, not := s.journal(drivebay.EventVolumeHealed), s.journal(drivebay.EventVolumeNotHealed)
				if !policy {
					if len(healed)+len(not) > 0 {
						s.Errorf("%s: nobody asked, and it is policy to wait for that: %q, %q", name, healed, not)
					}
					return
				}
				if len(healed) != len(c.healed) || c.not == "" && len(not) != 0 || c.not != "" && (len(not) != 1 || !strings.Contains(not[0], c.not)) {
					s.Fatalf("%s: healed %q, not %q", name, healed, not)
				}
				for i, want := range c.healed {
					if !strings.Contains(healed[i], want) || !strings.HasSuffix(healed[i], "(by itself)") {
						s.Errorf("%s: %q", name, healed[i])
					}
				}
				if c.not == "" {
					s.inUse(v, target(v, "pod"), false)
				}
			})
		}
	}
}

// TestTendReturned: a drive went and is back under another name. What stands on it
// is in use again by itself, but for what is locked.
func TestTendReturned(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, encrypted := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{Heal: true}, func(s *stand) {
				key := func(*drivebay.StageRequest) {}
				if encrypted {
					r.Class.Encryption, r.Secrets, key = drivebay.EncryptionLUKS2, secrets(rightKey), with(rightKey)
				}
				v := s.make(name, r)
				s.must(s.stage(v, key), s.publish(v, "pod"))
				if v.Mode == drivebay.ModeFS {
					s.must(s.sim.MakeFolder(place(target(v, "pod") + "/before")))
				}
				var serials []string
				for _, id := range v.Location.Drives {
					d, _ := s.mgr.Snapshot().Find(id)
					serials = append(serials, d.Serial)
					s.inject(id, "vanish")
				}
				time.Sleep(time.Second)
				if is := s.of(v); is.OperationalStatus != drivebay.Missing {
					s.Errorf("%s: a second after its drives went it is %v", name, is.OperationalStatus)
				}
				time.Sleep(time.Minute)
				if got := append(s.journal(drivebay.EventVolumeHealed), s.journal(drivebay.EventVolumeNotHealed)...); len(got) > 0 {
					s.Errorf("%s, without its drive: %q", name, got)
				}
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
				}
				time.Sleep(5 * time.Minute)
				if encrypted {
					if not := s.journal(drivebay.EventVolumeNotHealed); len(not) != 1 || !strings.Contains(not[0], "unlock the volume: ") {
						s.Errorf("%s: locked, and it is said: %q", name, not)
					}
					s.heal(v, keyed)
				}
				s.inUse(v, target(v, "pod"), false)
				if is := s.of(v); is.CSIStatus != drivebay.CSIPublished {
					s.Errorf("%s: %v", name, is.CSIStatus)
				}
				if v.Mode == drivebay.ModeFS && s.look(target(v, "pod")+"/before") != host.PlaceFolder {
					s.Errorf("%s: what was there before is not", name)
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
			})
		}
	}
}

// TestTendBacksOff: a volume that somebody unmounts again and again is mounted again
// more and more rarely, and promptly once that has stopped for long enough.
func TestTendBacksOff(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{Heal: true, Tick: 10 * time.Second}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		again := func(hours int) {
			for range hours * 60 {
				if len(s.mounts(staging(v))) > 0 {
					s.inject(staging(v), "fs-unmount")
				}
				time.Sleep(time.Minute)
			}
		}
		again(1)
		first := s.healings()
		again(3)
		if all := s.healings(); first < 5 || first > 7 || all < first+2 || all > first+4 {
			s.Errorf("%d healings in the first hour, %d in four", first, all)
		}
		time.Sleep(2 * time.Hour)
		s.inUse(v, staging(v), false)
		time.Sleep(3 * time.Hour)
		s.inject(staging(v), "fs-unmount")
		time.Sleep(45 * time.Second)
		s.inUse(v, staging(v), false)
	})
}

// TestTendNotWhileItMoves: whoever moves a volume knows what is in order there.
func TestTendNotWhileItMoves(t *testing.T) {
	t.Parallel()
	leaves := func(s *stand, v drivebay.Volume) {
		s.noSpare(v)
		s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
	}
	for name, c := range map[string]struct {
		backing drivebay.Backing
		begin   func(*stand, drivebay.Volume)
		healed  bool
	}{
		"a linear volume that stays": {drivebay.BackingLVM, func(*stand, drivebay.Volume) {}, true},
		"its drive has to leave":     {drivebay.BackingLVM, leaves, true},
		"it is on two drives, none of which leaves: it comes to rest first": {drivebay.BackingLVM, func(s *stand, v drivebay.Volume) {
			r := s.record(v)
			for _, d := range s.mgr.Snapshot().Drives {
				if d.ID != v.Location.Drives[0] {
					r.Volume.Location.Drives = []string{v.Location.Drives[0], d.ID}
				}
			}
			s.must(s.st.PutVolume(r))
			s.start()
		}, true},
		"a leg of a mirror has to leave": {drivebay.BackingMirror, leaves, false},
		"a mirror that stays":            {drivebay.BackingMirror, func(*stand, drivebay.Volume) {}, true},
	} {
		onMachine(t, smallDrives(), volume.Options{Heal: true}, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: c.backing, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v))
			c.begin(s, v)
			s.inject(staging(v), "fs-unmount")
			time.Sleep(2 * time.Minute)
			if got := len(s.mounts(staging(v))) > 0; got != c.healed || len(s.journal(drivebay.EventVolumeNotHealed)) > 0 {
				s.Errorf("%s: mounted again by itself: %v", name, got)
			}
		})
	}
}
