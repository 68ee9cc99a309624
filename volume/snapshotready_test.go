package volume_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
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
				if unavailable() == "" {
					_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.Errorf("it is ready to use; asked for again: %v", err)
				}
			})
		})
	}
}
