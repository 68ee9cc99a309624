package volume_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

var everyWipe = []drivebay.Wipe{drivebay.WipeNone, drivebay.WipeDiscard, drivebay.WipeZero}

// anywhere says whether a text is written anywhere on a drive.
func (s *stand) anywhere(id, text string) (is bool) {
	s.Helper()
	d, _ := s.mgr.Snapshot().Find(id)
	pages := s.sim.Written("/dev/" + d.Name)
	s.read(*d, func(r io.ReaderAt) {
		b := make([]byte, hostsim.PageSize)
		for _, page := range pages {
			_, err := r.ReadAt(b, int64(page))
			s.must(err)
			is = is || bytes.Contains(b, []byte(text))
		}
	})
	return is
}

// reviving starts the daemon again if it was killed.
func (s *stand) reviving(k *killer) {
	s.Helper()
	if k.dead() {
		k.arm(0)
		s.start()
	}
}

// noSecondLeg is LVM that dies before it makes the second leg of a mirror.
type noSecondLeg struct {
	lvm.Runner
	died atomic.Bool
}

func (r *noSecondLeg) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if i := slices.Index(argv, "--mirrors"); i >= 0 && argv[i+1] == "1" && !r.died.Swap(true) {
		return nil, errors.New("killed")
	}
	return r.Runner.Run(ctx, argv...)
}

// keptOpen is LVM while another program has every logical volume open: none is deactivated.
type keptOpen struct{ lvm.Runner }

func (r *keptOpen) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if i := slices.Index(argv, "--activate"); i >= 0 && argv[i+1] == "n" {
		return nil, &host.ExitError{Argv: argv, Code: 5, Stderr: "  Logical volume is in use."}
	}
	return r.Runner.Run(ctx, argv...)
}

// legBehind makes a mirror whose first leg has "oldbytes" and its second one "newbytes". Power was
// cut before the second leg recorded that it served alone, so the first leg is made anew, and it
// has room for that before its old extents.
func (s *stand) legBehind(wipe drivebay.Wipe) drivebay.Volume {
	s.Helper()
	r := requests()["a mirror"]
	first := s.make("first", r)
	r.Class.Wipe = wipe
	v := s.make("v", r)
	if v.Location.VG != first.Location.VG {
		s.Fatal("the mirrors are in two groups")
	}
	s.must(s.stage(v))
	s.word(v, "oldbytes")
	s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), first.ID))
	serial := s.serialOf(v.Location.Drives[0])
	s.inject(v.Location.Drives[0], "vanish")
	s.lvm = &keptOpen{Runner: s.sim}
	s.start()
	time.Sleep(10 * time.Second)
	s.must(s.stage(v))
	s.word(v, "newbytes")
	s.lvm = nil
	s.sim.PowerCut()
	s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
	return v
}

// TestLegMadeAnewLeavesNothing: a leg of a mirror that is made anew leaves nothing where it
// was, on a drive that stays in its group, but where the class says so; wherever the daemon
// or LVM is killed.
func TestLegMadeAnewLeavesNothing(t *testing.T) {
	t.Parallel()
	two := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "6GB"}}}
	for _, wipe := range everyWipe {
		k := &killer{}
		for after := -1; after <= len(k.steps()) && !t.Failed(); after++ {
			if after != 0 && wipe != drivebay.WipeZero {
				continue
			}
			onMachine(t, two, volume.Options{After: k.step, Heal: true}, func(s *stand) {
				v := s.legBehind(wipe)
				old := v.Location.Drives[0]
				time.Sleep(time.Minute)
				if after < 0 {
					s.lvm = &noSecondLeg{Runner: s.sim}
				}
				s.start()
				k.anew(max(after, 0))
				if err := s.stage(v); err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
					s.reviving(k)
				}
				s.must(s.stage(v))
				if got := s.word(v, ""); got != "newbytes" {
					t.Errorf("it reads %q", got)
				}
				if !s.anywhere(old, "newbytes") {
					t.Errorf("wipe %s, killed after step %d: its leg was not made anew", wipe, after)
				}
				if is := s.anywhere(old, "oldbytes"); is != (wipe == drivebay.WipeNone) {
					t.Errorf("wipe %s, killed after step %d of %q: the old leg is on the drive: %v", wipe, after, k.steps(), is)
				}
			})
		}
	}
}

// TestLegMadeAnewBeforeMove: a drive is released while a leg of a mirror there is behind. The move
// makes the leg anew in other extents and then moves it; neither place keeps data of the volume.
func TestLegMadeAnewBeforeMove(t *testing.T) {
	t.Parallel()
	three := hostsim.Spec{Drives: []hostsim.Group{{Count: 3, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "6GB"}}}
	onMachine(t, three, volume.Options{}, func(s *stand) {
		v := s.legBehind(drivebay.WipeZero)
		old := v.Location.Drives[0]
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		s.start()
		s.usage(old, drivebay.UsageReleased, 20*time.Minute)
		if s.must(s.stage(v)); s.word(v, "") != "newbytes" {
			t.Errorf("it reads %q", s.word(v, ""))
		}
		if s.anywhere(old, "oldbytes") || s.anywhere(old, "newbytes") {
			t.Error("its data is on the released drive")
		}
	})
}

// TestCalledOffMoveLeavesNothing: a move that is called off leaves nothing where it was
// copying to, but where the class says so; wherever the daemon is killed.
func TestCalledOffMoveLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror"} {
		for _, wipe := range few(everyWipe) {
			k := &killer{}
			for after := 0; after <= len(k.steps()) && !t.Failed(); after += everyNth {
				if after > 0 && wipe != drivebay.WipeZero {
					break
				}
				onMachine(t, fourSmall(), volume.Options{After: k.step}, func(s *stand) {
					r := requests()[name]
					r.Class.Wipe = wipe
					r.Size.Required = 2 << 30
					v := s.make("v", r)
					s.must(s.stage(v))
					s.word(v, "remains!")
					from := v.Location.Drives[0]
					k.anew(0)
					s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
					s.until("it moves", func() bool {
						return slices.ContainsFunc(k.steps(), func(step string) bool { return strings.HasPrefix(step, "move ") })
					})
					time.Sleep(12 * time.Second)
					k.anew(after)
					s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveCancel, ""))
					s.until("it is back", func() bool {
						s.reviving(k)
						return slices.Equal(s.of(v).Location.Drives, v.Location.Drives) && s.of(v).Usage == drivebay.VolumeInUse
					})
					time.Sleep(time.Minute)
					s.reviving(k)
					time.Sleep(time.Minute)
					if got := s.word(v, ""); got != "remains!" {
						t.Errorf("%s: it reads %q", name, got)
					}
					for _, d := range s.mgr.Snapshot().Drives {
						if slices.Contains(v.Location.Drives, d.ID) {
							continue
						}
						if is := s.anywhere(d.ID, "remains!"); is && wipe != drivebay.WipeNone {
							t.Errorf("%s, wipe %s, killed after step %d of %q: its data is on drive %s", name, wipe, after, k.steps(), d.Serial)
						}
					}
					s.must(s.unstage(v))
					k.anew(0)
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
					for _, d := range s.mgr.Snapshot().Drives {
						if is := s.anywhere(d.ID, "remains!"); is && wipe != drivebay.WipeNone {
							t.Errorf("%s, wipe %s, killed after step %d: it was deleted, and its data is on drive %s", name, wipe, after, d.Serial)
						}
					}
				})
			}
		}
	}
}

// TestDeletedWithoutALeg: a leg that left a mirror while that was being removed, on a drive
// that is BAD, is wiped with the mirror.
func TestDeletedWithoutALeg(t *testing.T) {
	t.Parallel()
	for _, wipe := range everyWipe {
		var active func()
		after := func(_, step string) error {
			if step == "mark" {
				active()
			}
			return nil
		}
		onMachine(t, smallDrives(), volume.Options{After: after}, func(s *stand) {
			r := requests()["a mirror"]
			r.Class.Wipe = wipe
			stays, v := s.make("stays", requests()["a mirror"]), s.make("v", r)
			old := v.Location.Drives[0]
			serial := s.serialOf(old)
			s.must(s.stage(v))
			s.word(v, "oldbytes")
			s.must(s.unstage(v), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "fail"}))
			s.until("the drive is BAD", func() bool {
				d, _ := s.mgr.Snapshot().Find(old)
				return d.Health == drivebay.HealthBad
			})
			active = func() {
				active = func() {}
				_ = s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"})
				time.Sleep(10 * time.Second)
				_ = s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}})
				time.Sleep(time.Minute)
			}
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			if is := s.anywhere(old, "oldbytes"); is != (wipe == drivebay.WipeNone) {
				t.Errorf("wipe %s: the leg that was left out is on the drive: %v", wipe, is)
			}
			if s.of(stays) == nil {
				t.Error("the other mirror is gone")
			}
		})
	}
}

// TestRanges: ranges that are added and cut are what single units would be: each is wiped
// once, and with zeros if one of those that were added asks for zeros.
func TestRanges(t *testing.T) {
	t.Parallel()
	const units = 40
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var list []drivebay.RemainsRange
		var want [units]drivebay.Wipe
		for range 8 {
			start := r.Uint64N(units)
			x := drivebay.RemainsRange{Start: start, Size: 1 + r.Uint64N(units-start), Wipe: everyWipe[1+r.IntN(2)]}
			if cut := r.IntN(3) == 0; cut {
				list, x.Wipe = volume.CutRange(list, x.Start, x.Size), ""
			} else {
				list = volume.AddRange(list, x)
			}
			for i := x.Start; i < x.Start+x.Size; i++ {
				if want[i] != drivebay.WipeZero || x.Wipe == "" {
					want[i] = x.Wipe
				}
			}
			var got [units]drivebay.Wipe
			for _, x := range list {
				for i := x.Start; i < x.Start+x.Size; i++ {
					if got[i] != "" || x.Size == 0 {
						t.Fatalf("seed %d: %v overlap", seed, list)
					}
					got[i] = x.Wipe
				}
			}
			if got != want {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
		}
	}
}
