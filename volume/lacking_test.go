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

// TestLacking: what volumes need of a machine and it does not have is named with what to do
// about it, and nothing else is.
func TestLacking(t *testing.T) {
	t.Parallel()
	without := func(programs ...string) hostsim.Spec {
		spec := sameDrives(2)
		spec.Without = programs
		return spec
	}
	for name, c := range map[string]struct {
		spec  hostsim.Spec
		opt   volume.Options
		fault string // of all drives
		want  string
	}{
		"nothing":                   {spec: sameDrives(2)},
		"no LVM":                    {spec: without("lvm", "dmsetup", "cryptsetup")},
		"no ext4":                   {spec: without("mkfs.ext4"), want: "mkfs.ext4 is not installed"},
		"no xfs":                    {spec: without("mkfs.xfs"), want: "leave xfs out of volumes.filesystems"},
		"no xfs, and no use for it": {spec: without("mkfs.xfs"), opt: volume.Options{FSTypes: []string{"ext4", "btrfs"}}},
		"no privilege":              {spec: sameDrives(2), fault: "permission", want: "may open no drive"},
		"drives that do not answer": {spec: sameDrives(2), fault: "eio"},
	} {
		onMachine(t, c.spec, c.opt, func(s *stand) {
			if c.fault != "" {
				for _, d := range s.mgr.Snapshot().Drives {
					s.inject(d.ID, c.fault)
				}
				time.Sleep(30 * time.Minute)
			}
			got := strings.Join(s.e.Lacking(), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				s.Errorf("%s: %q", name, got)
			}
			if c.fault != "" {
				return
			}
			for _, kind := range drivebay.FSTypes {
				class := drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeDiscard, FSType: kind}
				_, err := s.e.Capacity(s.Context(), class)
				made := drivebay.VolumeRequest{Name: kind, Class: class}
				_, err2 := s.e.CreateVolume(s.Context(), made)
				refused := strings.Contains(name, "no "+kind)
				if errors.Is(err, drivebay.ErrNoSupport) != refused || errors.Is(err2, drivebay.ErrNoSupport) != refused {
					s.Errorf("%s: capacity for %s: %v, create: %v", name, kind, err, err2)
				}
			}
			block := drivebay.VolumeRequest{Name: "block", Block: true, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeDiscard, FSType: "ext4"}}
			if _, err := s.e.CreateVolume(s.Context(), block); err != nil {
				s.Errorf("%s: a block volume: %v", name, err)
			}
		})
	}
}

// slowProgram is a machine on which mkfs.xfs does not answer.
type slowProgram struct {
	*hostsim.Machine
	slow atomic.Bool
}

func (m *slowProgram) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if argv[0] == "mkfs.xfs" && m.slow.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Machine.Run(ctx, argv...)
}

// TestToolThatDoesNotAnswer: a program that does not answer is not taken for installed, and the callers of
// a later search do not wait for it.
func TestToolThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	spec := sameDrives(1)
	spec.Without = []string{"mkfs.xfs"}
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		m := &slowProgram{Machine: s.sim}
		m.slow.Store(true)
		s.machine = m
		s.start()
		if got := s.e.Lacking(); len(got) != 0 {
			t.Errorf("without an answer: %q", got)
		}
		time.Sleep(time.Minute)
		go s.e.Lacking()
		time.Sleep(time.Second)
		from := time.Now()
		s.e.Lacking()
		if waited := time.Since(from); waited > 0 {
			t.Errorf("a second caller waited %v", waited)
		}
		m.slow.Store(false)
		time.Sleep(time.Minute)
		if got := strings.Join(s.e.Lacking(), "; "); !strings.Contains(got, "mkfs.xfs is not installed") {
			t.Errorf("after the answer: %q", got)
		}
	})
}

// lvmVersion is a machine on which "lvm version" ends as ends says.
type lvmVersion struct {
	*hostsim.Machine
	ends atomic.Pointer[func(context.Context) error]
}

func (m *lvmVersion) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if end := m.ends.Load(); end != nil && len(argv) == 2 && argv[0] == "lvm" && argv[1] == "version" {
		return nil, (*end)(ctx)
	}
	return m.Machine.Run(ctx, argv...)
}

// TestLVMThatDoesNotAnswer: an "lvm version" that stalls or fails proves nothing. Calls that need LVM are to be repeated, do not wait for
// one another, and succeed once it answers.
func TestLVMThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	class := drivebay.Class{Backing: drivebay.BackingLVM, Wipe: drivebay.WipeNone, FSType: "ext4"}
	for name, end := range map[string]func(context.Context) error{
		"stalls":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"is killed": func(context.Context) error { return &host.ExitError{Argv: []string{"lvm", "version"}, Code: -1} },
		"no memory": func(context.Context) error { return errors.New("fork/exec lvm: cannot allocate memory") },
	} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			m := &lvmVersion{Machine: s.sim}
			m.ends.Store(&end)
			s.machine = m
			s.start()
			if _, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: "a", Class: class}); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s: create: %v", name, err)
			}
			if _, err := s.e.Capacity(s.Context(), class); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s: capacity: %v", name, err)
			}
			if c := s.e.Capabilities(); !c.Unknown || c.Snapshots {
				t.Errorf("%s: %+v", name, c)
			}
			time.Sleep(time.Minute)
			go s.e.Capabilities()
			time.Sleep(time.Second)
			from := time.Now()
			s.e.Capabilities()
			if waited := time.Since(from); waited > 0 {
				t.Errorf("%s: a second caller waited %v", name, waited)
			}
			m.ends.Store(nil)
			time.Sleep(time.Minute)
			if _, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: "a", Class: class}); err != nil {
				t.Errorf("%s: once it answers: %v", name, err)
			}
			if c := s.e.Capabilities(); c.Unknown || !c.Snapshots {
				t.Errorf("%s: once it answers: %+v", name, c)
			}
		})
	}
}

// TestLVMIsBroken: an LVM that fails again and again is as none, so that a machine with partitions alone has a driver. Once it works, it is there.
func TestLVMIsBroken(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		end := func(context.Context) error { return &host.ExitError{Argv: []string{"lvm", "version"}, Code: 127} }
		m := &lvmVersion{Machine: s.sim}
		m.ends.Store(&end)
		s.machine = m
		s.start()
		for i := range 4 {
			if c := s.e.Capabilities(); c.Snapshots || c.Unknown != (i < 2) {
				t.Errorf("run %d: %+v", i, c)
			}
			time.Sleep(time.Minute)
		}
		m.ends.Store(nil)
		if c := s.e.Capabilities(); c.Unknown || !c.Snapshots {
			t.Errorf("once it works: %+v", c)
		}
	})
}

// TestLVMIsBrokenAtStart: LVM stalls or fails from the start on, and the machine has logical volumes. They and their snapshots are not shown as
// sound, because nothing is known of them. Once LVM works, they are.
func TestLVMIsBrokenAtStart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context) error{
		"stalls": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails":  func(context.Context) error { return &host.ExitError{Argv: []string{"lvm", "version"}, Code: 5} },
	} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v, p := s.make("v", rawVolume(drivebay.BackingThin)), s.make("p", rawVolume(drivebay.BackingPartition))
			_, err := s.e.CreateSnapshot(s.Context(), "s", v.ID)
			s.must(err)
			m := &lvmVersion{Machine: s.sim}
			m.ends.Store(&end)
			s.machine = m
			s.start()
			for range 5 {
				time.Sleep(2 * time.Minute)
				if is := s.of(v); !is.Condition.Abnormal() || s.of(p).Condition.Abnormal() {
					t.Errorf("%s: %s; that on a partition: %s", name, is.Condition.Message(), s.of(p).Condition.Message())
				}
				if shown := s.e.Volumes().Snapshots; len(shown) != 1 || shown[0].Unavailable == "" {
					t.Errorf("%s: the snapshot: %+v", name, shown)
				}
			}
			m.ends.Store(nil)
			time.Sleep(2 * time.Minute)
			if is := s.of(v); is.Condition.Abnormal() || s.e.Volumes().Snapshots[0].Unavailable != "" {
				t.Errorf("%s, once it works: %s", name, is.Condition.Message())
			}
			s.must(s.stage(v), s.unstage(v))
		})
	}
}
