package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// split is a mirror of which one leg missed a write: old is the drive of that leg, and
// current that of the other one. Both drives are there at first.
type split struct {
	*stand
	v            drivebay.Volume
	old, current *drivebay.Drive
}

// onSplit runs a test on a mirror in use, from each of the legs.
func onSplit(t *testing.T, test func(*split)) {
	t.Helper()
	onSplitWith(t, volume.Options{Heal: true}, test)
}

func onSplitWith(t *testing.T, opt volume.Options, test func(*split)) {
	t.Helper()
	for first := range 2 {
		onMachine(t, smallDrives(), opt, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			x := &split{stand: s, v: v}
			x.old, _ = s.mgr.Snapshot().Find(v.Location.Drives[first])
			x.current, _ = s.mgr.Snapshot().Find(v.Location.Drives[1-first])
			s.must(s.stage(v))
			s.word(v, "first")
			test(x)
		})
	}
}

func (x *split) pull(d *drivebay.Drive) {
	x.inject(d.ID, "vanish")
	time.Sleep(10 * time.Second)
}

func (x *split) putBack(drives ...*drivebay.Drive) {
	x.Helper()
	for _, d := range drives {
		x.must(x.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
	}
	time.Sleep(time.Minute)
}

// newer has the current leg alone take a write.
func (x *split) newer() {
	x.pull(x.old)
	x.word(x.v, "second")
}

// loseStore is a daemon that begins with no records.
func (x *split) loseStore() {
	x.Helper()
	x.stop()
	x.stop = nil
	x.must(x.st.DeleteVolume(x.v.ID))
	x.start()
}

// refused wants the mirror not to be activated, and that to be said.
func (x *split) refused(what string) {
	x.Helper()
	err := x.stage(x.v)
	if !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(fmt.Sprint(err), what) {
		x.Errorf("stage: %v, want a refusal with %q", err, what)
	}
	is := x.of(x.v)
	if is.Condition.Severity() != drivebay.SeverityInaccessible || !strings.Contains(reasons(is.Condition), "MirrorLegStale") {
		x.Errorf("it says %s: %s", reasons(is.Condition), is.Condition.Message())
	}
	if name := x.active(x.v); name != "" {
		if d, err := x.sim.OpenDisk(x.Context(), "/dev/"+name, false); err == nil {
			if _, err := d.ReadAt(make([]byte, 8), 700<<20); err == nil {
				x.Error("its old leg can be read")
			}
			d.Close()
		}
	}
}

// serves wants the mirror to be staged with these data, and both legs to have them after
// a while.
func (x *split) serves(want string) {
	x.Helper()
	x.must(x.stage(x.v))
	if got := x.word(x.v, ""); got != want {
		x.Fatalf("it reads %q, want %q", got, want)
	}
	time.Sleep(10 * time.Minute)
	for _, d := range []*drivebay.Drive{x.current, x.old} {
		x.pull(d)
		if got := x.word(x.v, ""); got != want {
			x.Errorf("without drive %s it reads %q, want %q", d.Serial, got, want)
		}
		x.putBack(d)
		time.Sleep(10 * time.Minute)
	}
	if is := x.of(x.v); is.Condition.Abnormal() && is.Volume.Lost == nil {
		x.Errorf("in the end: %s", is.Condition.Message())
	}
}

// TestMirrorStale: a leg that missed a write is not activated without the other one,
// whatever happens in between; with both of them there, it is the one that is copied to.
func TestMirrorStale(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(x *split){
		"staged": func(x *split) { x.pull(x.current); x.putBack(x.old) },
		"alive":  func(x *split) { x.must(x.unstage(x.v)); x.pull(x.current); x.putBack(x.old) },
		"restart": func(x *split) {
			x.must(x.unstage(x.v))
			x.pull(x.current)
			x.stop()
			x.stop = nil
			x.putBack(x.old)
			x.start()
		},
		"the daemon was down": func(x *split) {
			x.pull(x.current)
			x.putBack(x.old)
			x.start()
		},
		"reboot": func(x *split) {
			x.pull(x.current)
			x.stop()
			x.stop = nil
			x.sim.PowerCut()
			x.putBack(x.old)
			x.start()
		},
		"store lost":           func(x *split) { x.must(x.unstage(x.v)); x.pull(x.current); x.putBack(x.old); x.loseStore() },
		"store lost in use":    func(x *split) { x.pull(x.current); x.putBack(x.old); x.loseStore() },
		"store lost, rebooted": func(x *split) { x.pull(x.current); x.sim.PowerCut(); x.putBack(x.old); x.loseStore() },
	} {
		t.Run(name, func(t *testing.T) {
			onSplit(t, func(x *split) {
				if name == "the daemon was down" {
					x.stop()
					x.stop = nil
				}
				x.newer()
				between(x)
				want := x.current.Serial
				if strings.HasPrefix(name, "store lost") {
					want = "it is not known"
				}
				x.refused(want)
				x.heal(x.v)
				x.refused(want)
				x.putBack(x.current)
				x.serves("second")
			})
		})
	}
}

// TestMirrorBothBack: with both legs there the mirror is what was written last.
func TestMirrorBothBack(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(x *split){
		"unstaged":   func(x *split) { x.must(x.unstage(x.v)); x.pull(x.current) },
		"in use":     func(x *split) { x.pull(x.current) },
		"rebooted":   func(x *split) { x.pull(x.current); x.sim.PowerCut() },
		"store lost": func(x *split) { x.must(x.unstage(x.v)); x.pull(x.current); x.loseStore() },
		"never away": func(x *split) {},
	} {
		t.Run(name, func(t *testing.T) {
			onSplit(t, func(x *split) {
				x.newer()
				between(x)
				if name == "never away" {
					x.putBack(x.old)
				} else {
					x.putBack(x.old, x.current)
				}
				x.serves("second")
			})
		})
	}
}

// firstPartition is the kernel's name of it.
func firstPartition(d *drivebay.Drive) string {
	if last := d.Name[len(d.Name)-1]; last >= '0' && last <= '9' {
		return d.Name + "p1"
	}
	return d.Name + "1"
}

// TestMirrorFlagged: the group was changed while LVM could not see the leg with the newest
// data, so LVM counts that leg as missing although its drive is back. The mirror serves that
// leg, and the other one is copied from it; the same holds for a mirror that stays in use.
func TestMirrorFlagged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lost, used, heal bool }{{}, {lost: true}, {used: true}, {used: true, lost: true}, {used: true, heal: true}} {
		onSplitWith(t, volume.Options{Heal: c.heal}, func(x *split) {
			x.newer()
			if !c.used {
				x.must(x.unstage(x.v))
			}
			label := firstPartition(x.current)
			x.flip(label, 512, 32)
			x.putBack(x.old)
			old, _ := x.mgr.Snapshot().Find(x.old.ID)
			if out, err := x.sim.Run(x.Context(), "lvm", "vgextend", "--restoremissing", x.v.Location.VG, "/dev/"+firstPartition(old)); err != nil {
				x.Fatalf("%v: %s", err, out)
			}
			if err := x.stage(x.v); !c.used && !errors.Is(err, drivebay.ErrRefused) && !errors.Is(err, drivebay.ErrUnavailable) {
				x.Errorf("staged while the newest leg cannot be seen: %v", err)
			}
			x.flip(label, 512, 32)
			if c.lost {
				x.loseStore()
			}
			time.Sleep(11 * time.Minute) // it was read again
			x.must(x.stage(x.v))
			if got := x.word(x.v, ""); got != "second" {
				x.Errorf("%+v: it reads %q", c, got)
			}
			x.heal(x.v)
			time.Sleep(10 * time.Minute)
			x.pull(x.current)
			if got := x.word(x.v, ""); got != "second" {
				x.Errorf("%+v: the other leg reads %q", c, got)
			}
		})
	}
}

// TestMirrorUnseenNewest: LVM stops seeing the leg with the newest data after the report from
// which the activation is decided. The other leg is not activated, and nothing says later that
// it was used without the newest one.
func TestMirrorUnseenNewest(t *testing.T) {
	t.Parallel()
	onSplitWith(t, volume.Options{}, func(x *split) {
		x.newer()
		x.must(x.unstage(x.v))
		x.putBack(x.old)
		if _, _, err := x.e.ExpandVolume(x.Context(), x.v.ID, drivebay.SizeRange{Required: 2 << 30}); !errors.Is(err, drivebay.ErrPending) { // it reads a report
			x.Fatalf("grown with an old leg: %v", err)
		}
		label := firstPartition(x.current)
		x.flip(label, 512, 32)
		if err := x.stage(x.v); err == nil {
			x.Fatal("staged while the newest leg cannot be seen")
		}
		if name := x.active(x.v); name != "" {
			x.Error("the old leg is active")
		}
		x.flip(label, 512, 32)
		time.Sleep(11 * time.Minute) // it was read again
		x.must(x.stage(x.v))
		if got := x.word(x.v, ""); got != "second" {
			x.Errorf("it reads %q", got)
		}
		x.pull(x.current)
		if got := x.word(x.v, ""); got != "second" {
			x.Errorf("the other leg reads %q", got)
		}
	})
}

// TestMirrorUnseenLeg: both legs hold everything, and LVM stops seeing one after the report from
// which the activation is decided. The other one serves alone, and the record says so before
// anything is written to it.
func TestMirrorUnseenLeg(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.must(x.unstage(x.v)) // which reads a report
		label := firstPartition(x.old)
		x.flip(label, 512, 32)
		x.must(x.stage(x.v))
		x.word(x.v, "second")
		x.sim.PowerCut()
		x.flip(label, 512, 32)
		x.start()
		time.Sleep(11 * time.Minute)
		x.serves("second")
	})
}

// TestMirrorGrowthRefused: a mirror that is not in use and is asked for a size that no drive has
// stays as it is: each of its legs can still be used alone.
func TestMirrorGrowthRefused(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.must(x.unstage(x.v))
		if _, _, err := x.e.ExpandVolume(x.Context(), x.v.ID, drivebay.SizeRange{Required: 1 << 50}); !errors.Is(err, drivebay.ErrRange) {
			x.Fatalf("grown beyond every drive: %v", err)
		}
		x.pull(x.old)
		x.must(x.stage(x.v))
	})
}

// TestMirrorCurrentAlone: the leg that took all writes serves alone, also when only its
// superblock can say that it has.
func TestMirrorCurrentAlone(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(x *split){
		"unstaged":   func(x *split) { x.must(x.unstage(x.v)) },
		"rebooted":   func(x *split) { x.sim.PowerCut(); x.start() },
		"store lost": func(x *split) { x.must(x.unstage(x.v)); x.loseStore() },
	} {
		t.Run(name, func(t *testing.T) {
			onSplit(t, func(x *split) {
				x.newer()
				between(x)
				x.must(x.stage(x.v))
				if got := x.word(x.v, ""); got != "second" {
					x.Errorf("it reads %q", got)
				}
				x.putBack(x.old)
				x.serves("second")
			})
		})
	}
}

// TestMirrorUnsaid: a leg that was activated alone could not say so before the power goes, because another program has it open.
// The record has, and the other leg, which the kernel takes for in sync, is made anew.
func TestMirrorUnsaid(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.must(x.unstage(x.v))
		x.pull(x.old)
		x.lvm = &keptOpen{Runner: x.sim}
		x.start()
		x.must(x.stage(x.v))
		x.word(x.v, "second")
		x.lvm = nil
		x.sim.PowerCut()
		x.putBack(x.old)
		x.start()
		x.serves("second")
	})
	onSplit(t, func(x *split) {
		x.must(x.unstage(x.v))
		x.pull(x.old)
		x.must(x.stage(x.v))
		x.word(x.v, "second")
		x.pull(x.current)
		x.sim.PowerCut()
		x.putBack(x.old)
		x.start()
		x.refused(x.current.Serial)
	})
}

// TestMirrorAccepted: an operator may go on with an old leg. What the other one had is
// lost, is told, and does not come back.
func TestMirrorAccepted(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(x *split){
		"in use":   func(x *split) { x.putBack(x.current) },
		"unstaged": func(x *split) { x.must(x.unstage(x.v)); x.putBack(x.current) },
		"rebooted": func(x *split) { x.sim.PowerCut(); x.putBack(x.current); x.start() },
	} {
		t.Run(name, func(t *testing.T) {
			onSplit(t, func(x *split) {
				if err := x.e.AcceptLoss(x.Context(), x.v.ID); !errors.Is(err, drivebay.ErrInvalid) {
					x.Errorf("nothing is lost, and it was accepted: %v", err)
				}
				x.newer()
				for range 4 { // the superblock of the leg that is given up has seen more
					x.must(x.unstage(x.v), x.stage(x.v))
				}
				x.must(x.unstage(x.v))
				x.pull(x.current)
				x.putBack(x.old)
				x.refused(x.current.Serial)
				x.must(x.e.AcceptLoss(x.Context(), x.v.ID))
				x.must(x.stage(x.v))
				if got := x.word(x.v, ""); got != "first" {
					x.Errorf("it reads %q", got)
				}
				if is := x.of(x.v); is.Condition.Severity() != drivebay.SeverityDataLoss {
					x.Errorf("after data were given up: %s", is.Condition.Message())
				}
				x.word(x.v, "third")
				between(x)
				x.serves("third")
				x.must(x.e.ClearVolume(x.Context(), x.v.ID))
				time.Sleep(10 * time.Second)
				if is := x.of(x.v); is.Condition.Abnormal() {
					x.Errorf("in the end: %s", is.Condition.Message())
				}
			})
		})
	}
}

// TestMirrorDivided: legs that were each used without the other one wait for an operator.
func TestMirrorDivided(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.newer()
		x.must(x.unstage(x.v))
		x.pull(x.current)
		x.putBack(x.old)
		x.must(x.e.AcceptLoss(x.Context(), x.v.ID), x.stage(x.v))
		x.word(x.v, "third")
		x.must(x.unstage(x.v))
		x.loseStore()
		x.putBack(x.current)
		x.refused("each used without the other one")
		if err := x.e.AcceptLoss(x.Context(), x.v.ID); !errors.Is(err, drivebay.ErrInvalid) {
			x.Errorf("which of them is meant? %v", err)
		}
		x.pull(x.current)
		x.must(x.e.AcceptLoss(x.Context(), x.v.ID))
		x.putBack(x.current)
		x.serves("third")
	})
}

// TestMirrorCut: the power went while a mirror was in use, and one drive did not come
// back. Nothing says what was written to it last, and an operator decides.
func TestMirrorCut(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.stop()
		x.stop = nil
		x.newer()
		x.pull(x.current)
		x.sim.PowerCut()
		x.putBack(x.old)
		x.start()
		x.refused("may have been used without")
		x.putBack(x.current)
		x.serves("second")
	})
}

// TestMirrorGrowsWhole: a mirror of which one leg missed a write is not grown: that would
// take the old leg into use. It grows once both legs hold everything.
func TestMirrorGrowsWhole(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		for _, kind := range []string{"a mirror", "ext4 on a mirror"} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				r := requests()["a mirror"]
				if r.Block = kind == "a mirror"; !r.Block {
					r.Class.FSType = "ext4"
				}
				v := s.make("v", r)
				old, _ := s.mgr.Snapshot().Find(v.Location.Drives[first])
				s.must(s.stage(v))
				s.word(v, "first")
				s.inject(old.ID, "vanish")
				time.Sleep(10 * time.Second)
				s.word(v, "second")
				s.must(s.sim.Inject(hostsim.Fault{Drive: old.Serial, Fault: "return", Args: hostsim.Args{"rename": fmt.Sprint(first == 0)}}))
				time.Sleep(time.Minute)
				grow := func() error {
					_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
					return err
				}
				if err := grow(); !errors.Is(err, drivebay.ErrPending) {
					s.Errorf("%s, grown with an old leg: %v", kind, err)
				}
				if got := s.word(v, ""); got != "second" {
					s.Fatalf("%s reads %q", kind, got)
				}
				s.heal(v)
				time.Sleep(10 * time.Minute)
				s.must(grow())
				if got := s.word(v, ""); got != "second" {
					s.Errorf("%s, grown, reads %q", kind, got)
				}
			})
		}
	}
}

// TestMirrorNewestMissing: LVM counts the drive with the newest data as missing, because the
// group was changed while its label could not be read. When it can be read again the mirror
// has the newest data, and not those of the leg that LVM would use.
func TestMirrorNewestMissing(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]drivebay.LeaveVerb{"moves on": "", "stays": drivebay.LeaveCancel} {
		for first := range 2 {
			k := &killer{}
			onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
				v := s.make("v", requests()["a mirror"])
				old, current := v.Location.Drives[first], v.Location.Drives[1-first]
				serial := s.serialOf(old)
				s.must(s.stage(v))
				s.word(v, "first")
				s.must(s.unstage(v))
				s.inject(old, "vanish")
				time.Sleep(10 * time.Second)
				s.must(s.stage(v))
				s.word(v, "second")
				s.must(s.unstage(v))
				d, _ := s.mgr.Snapshot().Find(current)
				s.flip(d.Name+"p1", 512, 8)
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
				time.Sleep(time.Minute)
				s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
				s.until("another drive joins the group", func() bool { return slices.Contains(k.steps(), "join") })
				s.flip(d.Name+"p1", 512, 8)
				if then != "" {
					s.must(s.mgr.Operate(s.Context(), old, then, ""))
				}
				s.until("the group is on two drives", func() bool { return len(s.of(v).Location.Drives) == 2 })
				s.must(s.stage(v))
				if got := s.word(*vol(s.of(v)), ""); got != "second" {
					t.Errorf("%s: it reads %q", name, got)
				}
			})
		}
	}
}
