package volume_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// deadly has one of lvm's commands killed in the middle of its work.
type deadly struct {
	*hostsim.Machine
	command int // that changes something: the first is 1
	point   int // of it
	said    []string
}

func (d *deadly) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if !slices.Contains([]string{"fullreport", "version"}, argv[1]) {
		d.said = append(d.said, argv[1])
		if len(d.said) == d.command {
			d.KillNext(d.point)
		}
	}
	return d.Machine.Run(ctx, argv...)
}

// TestLVMKilled has every command of lvm killed at each of its points, as an
// out-of-memory killer would: called again, the volume is made, and is removed.
func TestLVMKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on thin", "a mirror"} {
		commands := 1
		for command := 1; command <= commands && !t.Failed(); command += everyNth {
			for _, point := range []int{1, 3} {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					d := &deadly{Machine: s.sim, command: command, point: point}
					s.lvm = d
					s.start()
					r := requests()[name]
					r.Name, r.Size.Required = name, 1<<30
					again := func(do func() error) {
						s.Helper()
						err := do()
						for n := 0; err != nil && n < 3; n++ {
							err = do()
						}
						s.must(err)
					}
					var v drivebay.Volume
					again(func() (err error) { v, err = s.e.CreateVolume(s.Context(), r); return err })
					again(func() (err error) {
						_, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
						return err
					})
					again(func() error { return s.e.DeleteVolume(s.Context(), v.ID) })
					s.blank()
					if commands = max(commands, len(d.said)); s.Failed() {
						s.Logf("%s: command %d, point %d of %q", name, command, point, d.said)
					}
				})
			}
		}
	}
}

// slowLVM takes a while for each command that changes something, and counts those that it ended and those
// that were cut short.
type slowLVM struct {
	*hostsim.Machine
	ended, cut atomic.Int64
}

func (l *slowLVM) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if argv[0] != "lvm" || slices.Contains([]string{"fullreport", "version"}, argv[1]) {
		return l.Machine.Run(ctx, argv...)
	}
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
		l.cut.Add(1)
		return nil, ctx.Err()
	}
	out, err := l.Machine.Run(ctx, argv...)
	l.ended.Add(1)
	return out, err
}

// TestLVMIsNotKilled: neither the end of a call nor that of the engine kills an LVM command that changes a
// volume group. The engine waits for it.
func TestLVMIsNotKilled(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		l := &slowLVM{Machine: s.sim}
		s.lvm = l
		s.start()
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		r := requests()["a mirror"]
		r.Name, r.Size.Required = "v", 1<<30
		if _, err := s.e.CreateVolume(ctx, r); err == nil {
			t.Fatal("created within a second")
		}
		s.restart(func() {
			if l.ended.Load() == 0 || l.cut.Load() > 0 {
				t.Errorf("LVM ended %d commands, and %d were cut short", l.ended.Load(), l.cut.Load())
			}
		})
		s.must(s.retried(func() error { _, err := s.e.CreateVolume(s.Context(), r); return err }))
		if l.cut.Load() > 0 {
			t.Errorf("%d commands were cut short", l.cut.Load())
		}
	})
}
