package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestSalvaged: in the middle of a move one of the two drives dies, and is given up.
// What was on the other one goes on as if nothing had been, what was not is lost and can
// be forgotten, and nothing of it is left. Killed after its steps it ends the same.
func TestSalvaged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		spare, moved bool // it is the new drive that dies; one of two volumes had moved
	}{
		{"a linear volume", false, false},
		{"a linear volume", false, true},
		{"ext4 on thin", false, false},
		{"a linear volume", true, false},
		{"a linear volume", true, true},
		{"xfs on linear", true, true},
		{"ext4 on thin", true, false},
	} {
		steps := 1
		for n := 1; n <= steps && !t.Failed(); n += everyNth {
			k := &killer{}
			onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
				h := s.halfMoved(k, c.name, c.moved, c.spare)
				k.anew(n)
				did := h.giveUp(k)
				for _, v := range []drivebay.Volume{h.used, h.idle} {
					if h.lost(v) {
						h.isLost(v)
					} else {
						h.goesOn(v)
					}
				}
				time.Sleep(time.Minute)
				for _, id := range []string{h.old, h.spare} {
					if id != h.gone {
						s.blankDrive(id)
					}
				}
				if steps = max(steps, len(did)); n == 1 || t.Failed() {
					t.Logf("%+v, killed after step %d of %q", c, n, did)
				}
			})
		}
	}
}

// half is a move of two volumes that has lost one of its drives.
type half struct {
	*stand
	used, idle       drivebay.Volume
	old, spare, gone string
	moved            string // the volume that was on the spare by then
}

func (s *stand) halfMoved(k *killer, name string, moved, spare bool) *half {
	s.Helper()
	h := &half{stand: s}
	h.used, h.idle = s.twoOf(name)
	s.word(h.used, "used")
	h.old = h.used.Location.Drives[0]
	arrived := func() string {
		for _, v := range []drivebay.Volume{h.used, h.idle} {
			if slices.Contains(k.steps(), "moved "+v.Location.LV) {
				return v.ID
			}
		}
		return ""
	}
	k.anew(0)
	s.must(s.mgr.Operate(s.Context(), h.old, drivebay.LeaveRelease, ""))
	for moved && arrived() == "" {
		time.Sleep(100 * time.Millisecond)
	}
	s.table(h.used, "handle_errors")
	h.spare = s.of(h.used).Location.Drives[1]
	if h.gone = h.old; spare {
		h.gone = h.spare
	}
	s.must(s.sim.Inject(hostsim.Fault{Drive: s.serialOf(h.gone), Fault: "vanish"}))
	s.table(h.used, " linear ")
	h.moved = arrived()
	return h
}

func (h *half) lost(v drivebay.Volume) bool { return (h.moved == v.ID) == (h.gone == h.spare) }

// giveUp gives the drive up, with what is lost let go of some time later, and starts
// the daemon once more.
func (h *half) giveUp(k *killer) (did []string) {
	h.Helper()
	if h.gone == h.spare { // it is in use
		h.must(h.mgr.Operate(h.Context(), h.gone, drivebay.LeaveRelease, ""))
	}
	h.must(h.mgr.Operate(h.Context(), h.gone, drivebay.LeaveForce, "it is dead"))
	time.Sleep(30 * time.Second)
	if h.lost(h.used) {
		if is := h.of(h.used); h.used.Mode == drivebay.ModeFS && len(is.Location.Drives) == 1 {
			h.Error("it is taken out of its group while it is mounted")
		}
		if d, _ := h.mgr.Snapshot().Find(h.old); h.gone == h.spare && h.used.Mode == drivebay.ModeFS && !strings.Contains(d.Leaving.Cause, "is still open: unmount it") {
			h.Errorf("drive %s does not say what its volume group waits for: %s", h.old, d.Leaving.Cause)
		}
		h.must(h.retried(func() error { return h.unstage(h.used) }))
	}
	time.Sleep(time.Minute)
	h.start()
	time.Sleep(time.Minute)
	did = k.steps()
	k.anew(0)
	if h.gone == h.spare {
		h.usage(h.old, drivebay.UsageReleased, 5*time.Minute)
	}
	return did
}

func (h *half) isLost(v drivebay.Volume) {
	h.Helper()
	if is := h.of(v); !slices.Equal(is.Location.Drives, []string{h.gone}) || is.OperationalStatus != drivebay.Missing {
		h.Errorf("%s is lost: it is on %v, %v", v.Name, is.Location.Drives, is.OperationalStatus)
	}
	h.must(h.retried(func() error { return h.e.ForgetVolume(h.Context(), v.ID) }))
}

func (h *half) goesOn(v drivebay.Volume) {
	h.Helper()
	is := h.of(v)
	if slices.Contains(is.Location.Drives, h.old) || slices.Contains(is.Location.Drives, h.gone) || is.Usage != drivebay.VolumeInUse || is.OperationalStatus != drivebay.Operative {
		h.Errorf("%s goes on: it is on %v, %v, %v: %s", v.Name, is.Location.Drives, is.Usage, is.OperationalStatus, is.Condition.Message())
	}
	if v.ID == h.used.ID {
		if got := h.word(v, ""); got != "used" {
			h.Errorf("it reads %q", got)
		}
		h.must(h.retried(func() error { return h.unstage(v) }))
	}
	h.must(h.retried(func() error { return h.stage(v) }), h.retried(func() error { return h.unstage(v) }))
	if snaps := h.e.Volumes().Snapshots; v.ID == h.used.ID {
		for _, snap := range snaps {
			h.must(h.retried(func() error { return h.e.DeleteSnapshot(h.Context(), snap.ID) }))
		}
	}
	h.must(h.retried(func() error { return h.e.DeleteVolume(h.Context(), v.ID) }))
}

// TestUnlabelled: a drive is taken to hold nothing of LVM by what is written on it, not
// by what the kernel shows of it; what cannot be read is not nothing.
func TestUnlabelled(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		id := v.Location.Drives[0]
		_, other := s.idle(id)
		s.must(s.e.Unlabelled(s.Context(), other))
		d, _ := s.mgr.Snapshot().Find(id)
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
		s.must(err)
		_, err = s.sim.Run(s.Context(), "lvm", "lvchange", "--devices", "/dev/"+d.Name+"p1", "--activate", "n", v.Location.VG+"/"+v.Location.LV)
		s.must(err, disk.RemovePartition(1), disk.Close())
		if err := s.e.Unlabelled(s.Context(), id); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "layout") {
			t.Errorf("the partition is not shown: %v", err)
		}
		s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "unreadable", Args: hostsim.Args{"sector": "2048", "n": "8"}}))
		if err := s.e.Unlabelled(s.Context(), id); err == nil {
			t.Error("it cannot be read")
		}
	})
}
