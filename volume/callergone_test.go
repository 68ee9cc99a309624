package volume_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// lateKernel is a machine whose kernel returns late from a mount, or from a program with some words, while it is armed: it has done it then,
// whether the context of the call has ended or not.
type lateKernel struct {
	*hostsim.Machine
	word  atomic.Pointer[string]
	delay time.Duration
}

func (m *lateKernel) arm(word string) { m.word.Store(&word) }

func (m *lateKernel) late(words ...string) {
	if w := m.word.Load(); w != nil && slices.Contains(words, *w) && m.word.CompareAndSwap(w, nil) {
		time.Sleep(m.delay)
	}
}

func (m *lateKernel) Mount(ctx context.Context, n host.NewMount) error {
	m.late("mount")
	return m.Machine.Mount(ctx, n)
}

func (m *lateKernel) Unmount(ctx context.Context, p host.Place) error {
	m.late("unmount")
	return m.Machine.Unmount(ctx, p)
}

func (m *lateKernel) RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error) {
	if !slices.Contains(argv, "--test-passphrase") {
		m.late(argv...)
	}
	return m.Machine.RunInput(context.WithoutCancel(ctx), input, argv...)
}

func onLateKernel(t *testing.T, delay time.Duration, test func(*stand, *lateKernel)) {
	t.Helper()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		m := &lateKernel{Machine: s.sim, delay: delay}
		s.machine = m
		s.start()
		test(s, m)
	})
}

// TestMountedTooLate: the kernel returns from a mount, after a replay of a journal, when the stage has failed and the
// volume was unstaged since.
func TestMountedTooLate(t *testing.T) {
	t.Parallel()
	onLateKernel(t, 5*time.Minute, func(s *stand, m *lateKernel) {
		v := s.make("v", requests()["ext4 on a partition"])
		m.arm("mount")
		if err := s.stage(v); !errors.Is(err, drivebay.ErrTimeout) {
			t.Fatalf("staged: %v", err)
		}
		s.must(s.unstage(v))
		time.Sleep(10 * time.Minute)
		if n := len(s.mounts(staging(v))); n > 0 {
			t.Errorf("%d mounts of an unstaged volume; record: %+v", n, s.of(v).Publications)
		}
		if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestUnlockedTooLate: as TestMountedTooLate, with the device of an encrypted volume.
func TestUnlockedTooLate(t *testing.T) {
	t.Parallel()
	onLateKernel(t, 5*time.Minute, func(s *stand, m *lateKernel) {
		v := s.make("v", encryptedRequests()["ext4 on a partition"])
		m.arm("open")
		if err := s.stage(v, with(rightKey)); !errors.Is(err, drivebay.ErrTimeout) {
			t.Fatalf("staged: %v", err)
		}
		s.must(s.unstage(v))
		time.Sleep(10 * time.Minute)
		if names, _ := s.sim.ReadDir("sys/block"); slices.ContainsFunc(names, func(n string) bool { return n[:3] == "dm-" }) {
			t.Errorf("the unstaged volume is unlocked: %v", names)
		}
		s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestUnmountedTooLate: the kernel returns from an unmount when the volume was staged or published there again. A call is not answered
// with success before that.
func TestUnmountedTooLate(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"stage", "publish"} {
		onLateKernel(t, 5*time.Minute, func(s *stand, m *lateKernel) {
			v := s.make("v", requests()["ext4 on a partition"])
			path, do, undo := staging(v), func() error { return s.stage(v) }, func() error { return s.unstage(v) }
			s.must(do())
			if what == "publish" {
				path, do, undo = target(v, "pod"), func() error { return s.publish(v, "pod") }, func() error { return s.unpublish(v, "pod") }
				s.must(do())
			}
			m.arm("unmount")
			if err := undo(); !errors.Is(err, drivebay.ErrTimeout) {
				t.Fatalf("%s undone: %v", what, err)
			}
			if err := do(); !errors.Is(err, drivebay.ErrPending) {
				t.Errorf("%s while the kernel unmounts: %v", what, err)
			}
			time.Sleep(10 * time.Minute)
			s.must(do())
			time.Sleep(10 * time.Minute)
			if n := len(s.mounts(path)); n != 1 {
				t.Errorf("%s: %d mounts", what, n)
			}
		})
	}
}

// TestExpandAfterTimeout: a growth that the drive did not answer in time succeeds when it is requested again, also with a filesystem in use.
func TestExpandAfterTimeout(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "a partition"} {
		onStand(t, func(s *stand) {
			v := s.make("v", requests()[name])
			s.must(s.stage(v), s.publish(v, "pod"))
			d := s.drive(v)
			s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "70s"}}))
			grow := func() error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				return err
			}
			first := grow()
			s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"}))
			time.Sleep(10 * time.Minute)
			if err := s.retried(grow); first == nil || err != nil {
				t.Errorf("%s: first %v, again: %v", name, first, err)
			}
			time.Sleep(time.Minute)
		})
	}
}
