package volume_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// sickPool is LVM that reports the state of a thin pool.
type sickPool struct {
	lvm.Runner
	state atomic.Pointer[string]
}

func (p *sickPool) Run(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := p.Runner.Run(ctx, argv...)
	if state := p.state.Load(); state != nil && slices.Contains(argv, "fullreport") {
		lines := strings.SplitAfter(string(out), "{")
		for i, line := range lines {
			if strings.Contains(line, `"thin,pool"`) {
				lines[i] = strings.Replace(line, `"lv_health_status": ""`, `"lv_health_status": "`+*state+`"`, 1)
			}
		}
		out = []byte(strings.Join(lines, ""))
	}
	return out, err
}

// TestSnapshotNotThere: a snapshot that LVM does not show, or whose thin pool makes no copy of it, is not ready to use, whatever its
// record says.
func TestSnapshotNotThere(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"removed", "label", "failed", "metadata_read_only"} {
		t.Run(how, func(t *testing.T) {
			onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
				pool := &sickPool{Runner: s.sim}
				s.lvm = pool
				s.start()
				v := s.make("v", rawVolume(drivebay.BackingThin))
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
				unavailable := func() string {
					is, ok := s.e.Volumes().GetSnapshot(snap.ID)
					if !ok {
						s.Fatal("it is not listed")
					}
					return is.Unavailable
				}
				if why := unavailable(); why != "" {
					s.Errorf("it was just made: %s", why)
				}
				switch how {
				case "removed":
					_, err = s.sim.Run(s.Context(), "lvm", "lvremove", "--yes", snap.Location.VG+"/"+snap.Location.LV)
					s.must(err, s.mgr.Refresh(s.Context()))
				case "label":
					s.flip(s.driveOf(v).Name+"p1", 512+40, 1)
					s.must(s.mgr.Refresh(s.Context()))
				default:
					pool.state.Store(&how)
				}
				time.Sleep(15 * time.Minute)
				s.notReady(snap)
			})
		})
	}
}

// notReady wants a snapshot not to be ready to use, in the list and in the answer to a repeated request.
func (s *stand) notReady(snap drivebay.VolumeSnapshot) {
	s.Helper()
	if is, ok := s.e.Volumes().GetSnapshot(snap.ID); !ok || is.Unavailable == "" {
		s.Errorf("it is ready to use, listed: %v", ok)
	}
	if again, err := s.e.CreateSnapshot(s.Context(), snap.Name, snap.Source); err == nil && again.Unavailable == "" {
		s.Error("asked for again, it is ready to use")
	}
}

// TestSnapshotNotCopied: a snapshot is not ready to use while nothing is written to its drive, so that no copy can be made of it, nor
// while LVM makes no report. It is ready again when that is over.
func TestSnapshotNotCopied(t *testing.T) {
	t.Parallel()
	for how, begin := range map[string]func(s *stand, v drivebay.Volume, bad *spoiled) (end func()){
		"no report": func(_ *stand, _ drivebay.Volume, bad *spoiled) func() {
			bad.on.Store(true)
			return func() { bad.on.Store(false) }
		},
		"removed and back": func(s *stand, v drivebay.Volume, _ *spoiled) func() {
			id := v.Location.Drives[0]
			serial := s.serialOf(id)
			_, other := s.idle(id)
			s.must(s.mgr.Cordon(s.Context(), other, true))
			s.giveUpDrive(id)
			s.comesBack(serial)
			return func() { s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveAccept, "")) }
		},
		"copied": func(s *stand, v drivebay.Volume, _ *spoiled) func() {
			other := s.other(v)
			s.clone(s.driveOf(v).Name, other.Name)
			return func() {
				s.onDrive(other.Name, func(disk host.Disk, table *gpt.Table) {
					for _, at := range s.sim.Written("/dev/" + other.Name) {
						_, err := disk.WriteAt(make([]byte, 4096), int64(at))
						s.must(err)
					}
					s.must(disk.RemovePartition(table.Partitions[0].Number))
				})
			}
		},
		"shrank": func(s *stand, v drivebay.Volume, _ *spoiled) func() {
			d := s.driveOf(v)
			s.resize(d.ID, d.Size-4<<20)
			return func() { s.resize(d.ID, d.Size) }
		},
		"write-protected": func(s *stand, v drivebay.Volume, _ *spoiled) func() {
			s.inject(v.Location.Drives[0], "read-only")
			return func() { s.inject(v.Location.Drives[0], "heal") }
		},
		"another layout": func(s *stand, v drivebay.Volume, _ *spoiled) func() {
			resize := func(by int64) {
				s.onDrive(s.driveOf(v).Name, func(disk host.Disk, table *gpt.Table) {
					table.Partitions[0].Size += uint64(by)
					s.must(table.Write(disk))
				})
			}
			resize(-16 << 20)
			return func() { resize(16 << 20) }
		},
	} {
		t.Run(how, func(t *testing.T) {
			onMachine(t, nvmeDrives(2), volume.Options{}, func(s *stand) {
				bad := &spoiled{lvmRunner: s.sim, by: []string{""}}
				s.lvm = bad
				s.start()
				v := s.make("v", rawVolume(drivebay.BackingThin))
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
				if snap.Unavailable != "" {
					s.Errorf("it was just made: %s", snap.Unavailable)
				}
				end := begin(s, v, bad)
				time.Sleep(20 * time.Minute)
				s.notReady(snap)
				end()
				time.Sleep(20 * time.Minute)
				if is, ok := s.e.Volumes().GetSnapshot(snap.ID); !ok || is.Unavailable != "" {
					s.Errorf("it is over: listed %v, %s", ok, is.Unavailable)
				}
			})
		})
	}
}
