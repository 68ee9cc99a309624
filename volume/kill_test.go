package volume_test

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

var (
	errKilled = errors.New("killed")
	seed      = maphash.MakeSeed()
)

// killer ends the work after one of its steps, as a crash would. Others may look on
// while it works.
type killer struct {
	mu    sync.Mutex
	after int // 0: never
	done  []string
}

// steps are those that were done so far.
func (k *killer) steps() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.done)
}

// dead says whether it has killed.
func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.after > 0 && len(k.done) >= k.after
}

// arm lets it kill after n steps from now; 0: never.
func (k *killer) arm(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.after = 0; n > 0 {
		k.after = len(k.done) + n
	}
}

// anew forgets what was done, and kills after n steps from now.
func (k *killer) anew(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done, k.after = nil, n
}

func (k *killer) step(_, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = append(k.done, name)
	if len(k.done) == k.after {
		return errKilled
	}
	return nil
}

// restarted starts the daemon again if it was killed, and lets it take up its work.
func (s *stand) restarted(err error) (killed bool) {
	s.Helper()
	if err != nil && !errors.Is(err, errKilled) {
		s.Fatal(err)
	}
	if err != nil {
		s.start()
	}
	return err != nil
}

// read shows a drive to f.
func (s *stand) read(d drivebay.Drive, f func(io.ReaderAt)) {
	s.Helper()
	open, err := s.sim.OpenDrive(context.Background(), "/dev/"+d.Name)
	if err != nil {
		s.Fatal(err)
	}
	defer open.Close()
	f(open)
}

// pages shows f the pages of a drive that have other bytes than zeros.
func (s *stand) pages(d drivebay.Drive, f func(at int64, page []byte)) {
	s.Helper()
	written := s.sim.Written("/dev/" + d.Name)
	slices.Sort(written)
	s.read(d, func(r io.ReaderAt) {
		b := make([]byte, 4096)
		for _, at := range written {
			_, err := r.ReadAt(b, int64(at))
			s.must(err)
			if !zero(b) {
				f(int64(at), b)
			}
		}
	})
}

// sums are of what is written on the drives, but for those of a volume.
func (s *stand) sums(but ...string) map[string]uint64 {
	s.Helper()
	out := map[string]uint64{}
	for _, d := range s.mgr.Snapshot().Drives {
		var h maphash.Hash
		h.SetSeed(seed)
		s.pages(d, func(at int64, page []byte) {
			maphash.WriteComparable(&h, at)
			h.Write(page)
		})
		out[d.ID] = h.Sum64()
	}
	for _, id := range but {
		delete(out, id)
	}
	return out
}

// blank wants all drives as they were before anything was made.
func (s *stand) blank() {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		s.read(d, func(r io.ReaderAt) {
			if c := content.DetectDrive(r, d.Size, d.LogicalBlock); c.Kind != drivebay.ContentBlank {
				s.Errorf("drive %s is left %v", d.ID, c)
			}
		})
	}
}

// TestKilled cuts every operation short after each of its steps and starts again:
// the end is the one that an undisturbed run comes to.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		if strings.HasPrefix(name, "xfs") || name == "btrfs on a partition" { // the steps of ext4
			continue
		}
		t.Run(name, func(t *testing.T) {
			k := &killer{}
			live(t, k, name, r)
			steps := k.steps()
			if t.Logf("steps: %q", steps); len(steps) < 8 {
				t.Fatalf("only %d steps", len(steps))
			}
			for n := 1; n <= len(steps) && !t.Failed(); n += everyNth {
				k.anew(n)
				live(t, k, name, r)
				if t.Failed() {
					t.Logf("killed after step %d, %q", n, steps[n-1])
				}
			}
		})
	}
}

// live is the life of a volume.
func live(t *testing.T, k *killer, name string, r drivebay.VolumeRequest) {
	onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
		r := r
		r.Name, r.Size.Required = name, 1<<30
		v, err := s.e.CreateVolume(s.Context(), r)
		if s.restarted(err) {
			if v, err = s.e.CreateVolume(s.Context(), r); err != nil {
				s.Fatal(err)
			}
		}
		if v.CSIStatus != drivebay.CSICreated || s.of(v).Work != "" {
			s.Errorf("made: %v, %q", v.CSIStatus, s.of(v).Work)
		}
		before := s.sums(v.Location.Drives...)
		if r.Class.Backing != drivebay.BackingDrive {
			_, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			s.restarted(err)
			if is := s.of(v); is.Size != 2<<30 || is.Work != "" || is.CSIStatus == drivebay.CSIResizing {
				s.Errorf("grown: %d bytes, %v, %q", is.Size, is.CSIStatus, is.Work)
			}
		}
		s.restarted(s.e.DeleteVolume(s.Context(), v.ID))
		if _, there := s.e.Volumes().Get(v.ID); there {
			s.Error("removed: it is still listed")
		}
		if after := s.sums(v.Location.Drives...); !maps.Equal(before, after) {
			s.Error("other drives have changed")
		}
		s.blank()
	})
}

// smallDrives are small because some tests copy whole drives, byte by byte.
func smallDrives() hostsim.Spec { return drivesOf("5GB") }

// drivesOf are two drives of one size and kind, and one of another kind.
func drivesOf(size string) hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: size}, {Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: size}}}
}

// TestAskedAgainAtOnce: who asks again for what was cut short, before it was taken up,
// is told that it is under way, and then that it is done.
func TestAskedAgainAtOnce(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"partition": requests()["a partition"], "thin": requests()["ext4 on thin"]} {
		k := &killer{}
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", r)
			for what, ask := range map[string]func() error{
				"grown": func() error {
					_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
					return err
				},
				"removed": func() error { return s.e.DeleteVolume(s.Context(), v.ID) },
			} {
				if _, there := s.e.Volumes().Get(v.ID); !there {
					_ = s.retried(func() error { return s.e.Missing("aaaaaaaaaaaaaaaaaaaaaaaaaa") }) // the drives are listed
					v = s.make("v", r)
				}
				k.arm(1)
				if err := ask(); !errors.Is(err, errKilled) {
					s.Fatalf("%s, %s: %v", name, what, err)
				}
				s.stop()
				s.stop = nil
				s.begin()
				err := ask()
				for ; errors.Is(err, drivebay.ErrPending) || errors.Is(err, drivebay.ErrBusy) || errors.Is(err, drivebay.ErrUnavailable); err = ask() {
					time.Sleep(time.Millisecond)
				}
				if s.must(err); what == "grown" {
					time.Sleep(10 * time.Second)
					if is := s.of(v); is.Size != 2<<30 || is.Failure != nil || is.Work != "" {
						s.Errorf("%s, %s: %+v", name, what, is.Volume)
					}
				}
			}
		})
	}
}
