package volume_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// apart are two volumes on different drives of a kind.
func (s *stand) apart(kind drivebay.Type) (a, b drivebay.Volume) {
	s.Helper()
	var of []drivebay.Volume
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		v := s.make(name, drivebay.VolumeRequest{Class: drivebay.Class{Drives: kind, Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}})
		d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
		if d.Type == kind && (len(of) == 0 || of[0].Location.Drives[0] != v.Location.Drives[0]) {
			of = append(of, v)
		}
		if len(of) == 2 {
			return of[0], of[1]
		}
	}
	s.Fatalf("no two drives of kind %v", kind)
	return
}

// TestHungDrive: whatever is done to volumes on a drive that answers nothing ends
// within its time, costs no more threads however often it is asked, and delays
// nobody else.
func TestHungDrive(t *testing.T) {
	onStand(t, func(s *stand) {
		hung, other := s.apart(drivebay.TypeNVMe)
		for _, v := range []drivebay.Volume{hung, other} {
			s.must(s.stage(v), s.publish(v, "pod"))
		}
		time.Sleep(2 * time.Minute)
		s.inject(hung.Location.Drives[0], "hang")
		timed := func(do func() error) (time.Duration, error) {
			began := time.Now()
			err := do()
			return time.Since(began), err
		}
		ask := func(v drivebay.Volume) error { _, err := s.stats(v, target(v, "pod")); return err }
		slow := 0
		for range 90 { // a probe comes to be under way, and hangs
			time.Sleep(time.Second)
			took, err := timed(func() error { return ask(hung) })
			if err != nil || took > time.Second {
				t.Errorf("stats of the hung one: %v after %v", err, took)
			}
			if took > 5*time.Millisecond {
				slow++
			}
		}
		if slow > 1 {
			t.Errorf("%d times stats of the hung one were slow", slow)
		}
		got, _ := s.stats(hung, target(hung, "pod"))
		if r := reasons(got.Condition); got.Condition.Severity() != drivebay.SeverityInaccessible || !strings.Contains(r, "IOStalled") || got.Bytes.Total == 0 {
			t.Errorf("the hung one: %s, %d bytes", r, got.Bytes.Total)
		}
		threads := runtime.NumGoroutine()
		for range 360 {
			time.Sleep(10 * time.Second)
			if took, err := timed(func() error { return ask(hung) }); err != nil || took > 5*time.Millisecond {
				t.Fatalf("stats of the hung one, again: %v after %v", err, took)
			}
			if took, err := timed(func() error { return ask(other) }); err != nil || took > time.Millisecond {
				t.Fatalf("stats of the other: %v after %v", err, took)
			}
		}
		if now := runtime.NumGoroutine(); now > threads+2 {
			t.Errorf("%d goroutines after an hour, %d before", now, threads)
		}

		done := make(chan error)
		go func() { done <- errors.Join(s.unpublish(hung, "pod"), s.unstage(hung)) }()
		time.Sleep(time.Second)
		if took, err := timed(func() error {
			return errors.Join(s.unpublish(other, "pod"), s.unstage(other), s.stage(other), s.publish(other, "pod"))
		}); err != nil || took > time.Millisecond {
			t.Errorf("the other is used meanwhile: %v after %v", err, took)
		}
		if took, err := timed(func() error { _, err := s.stats(hung, staging(hung)); return err }); err != nil || took > 5*time.Millisecond {
			t.Errorf("stats while the unmount hangs: %v after %v", err, took)
		}
		if took, err := timed(func() error { return <-done }); err == nil || took > 3*time.Minute {
			t.Errorf("the hung one is unstaged: %v after %v", err, took)
		}
		s.inject(hung.Location.Drives[0], "heal")
		time.Sleep(2 * time.Minute)
		s.must(s.unpublish(hung, "pod"), s.unstage(hung))
		if kind := s.look(target(hung, "pod")); kind != host.PlaceNothing || len(s.mounts(staging(hung))) != 0 {
			t.Error("something of the hung one is left")
		}
	})
}

// TestLetGo: a volume whose drive is gone, for good or under another name, is
// unpublished and unstaged like any other; one that comes back is used again.
func TestLetGo(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		b := s.make("b", drivebay.VolumeRequest{Block: true})
		s.must(s.stage(v), s.publish(v, "pod"), s.stage(b), s.publish(b, "pod"))
		s.inject(v.Location.Drives[0], "vanish")
		if b.Location.Drives[0] != v.Location.Drives[0] {
			s.inject(b.Location.Drives[0], "vanish")
		}
		time.Sleep(10 * time.Second)
		if got := s.of(v); got.OperationalStatus != drivebay.Missing || got.CSIStatus != drivebay.CSIPublished {
			t.Errorf("pulled: %v, %v", got.OperationalStatus, got.CSIStatus)
		}
		s.must(s.unpublish(b, "pod"), s.unstage(b), s.unpublish(v, "pod"))
		s.must(s.sim.Inject(hostsim.Fault{Drive: s.drive(v).Serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
		time.Sleep(30 * time.Second)
		if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) { // what is staged is dead
			t.Errorf("published from a dead mount: %v", err)
		}
		s.must(s.stage(v), s.publish(v, "pod"))
		if n := len(s.mounts(staging(v))); n != 1 {
			t.Errorf("%d mounts are staged", n)
		}
		if got, err := s.stats(v, target(v, "pod")); err != nil || got.Condition.Severity() >= drivebay.SeverityInaccessible || got.Bytes.Total == 0 {
			t.Errorf("back under another name: %s, %v", got.Condition.Message(), err)
		}
		s.must(s.unpublish(v, "pod"), s.unstage(v))
	})
}

func (s *stand) drive(v drivebay.Volume) *drivebay.Drive {
	s.Helper()
	d, ok := s.mgr.Snapshot().Find(v.Location.Drives[0])
	if !ok {
		s.Fatalf("drive of volume %s is not known", v.ID)
	}
	return d
}

// TestFailure: a volume that cannot be mounted says so until it is, and is let go.
func TestFailure(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.inject(v.Location.Drives[0], "eio")
		if err := s.stage(v); err == nil {
			t.Fatal("mounted from a drive that reads nothing")
		}
		got := s.of(v)
		if got.CSIStatus != drivebay.CSIFailed || got.Failure.Before != drivebay.CSICreated || got.Failure.Cause == "" || !strings.Contains(reasons(got.Condition), "OperationFailed") {
			t.Errorf("%v, %+v, %s", got.CSIStatus, got.Failure, reasons(got.Condition))
		}
		s.must(s.unpublish(v, "pod"), s.unstage(v))
		s.inject(v.Location.Drives[0], "heal")
		s.must(s.stage(v))
		if got := s.of(v); got.CSIStatus != drivebay.CSIVolumeReady || got.Failure != nil {
			t.Errorf("mounted after all: %v, %+v", got.CSIStatus, got.Failure)
		}
	})
}

// TestWrongFilesystem: another one than was made for the volume is not mounted.
func TestWrongFilesystem(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		r := s.record(v)
		r.Volume.FSUUID = "11111111-2222-3333-4444-555555555555"
		s.must(s.st.PutVolume(r))
		s.start()
		if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) || len(s.mounts(staging(v))) != 0 {
			t.Errorf("a filesystem of another id: %v", err)
		}
	})
}

// TestGrow: online by ExpandNode, offline by the next mount.
func TestGrow(t *testing.T) {
	for _, block := range []bool{false, true} {
		for _, online := range []bool{true, false} {
			onStand(t, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Block: block})
				if online {
					s.must(s.stage(v), s.publish(v, "pod"))
				}
				grown, node, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				if err != nil || node == block || grown.Size != 2<<30 {
					t.Fatalf("grown to %d, node %v, %v", grown.Size, node, err)
				}
				if !online {
					if _, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil); !errors.Is(err, drivebay.ErrNotFound) {
						t.Errorf("grown where it is not: %v", err)
					}
					s.must(s.stage(v), s.publish(v, "pod"))
					if got := s.of(v).CSIStatus; got != drivebay.CSIPublished {
						t.Errorf("mounted after it was grown, it is %v", got)
					}
				} else if !block && s.of(v).CSIStatus != drivebay.CSIResized {
					t.Errorf("it is %v", s.of(v).CSIStatus)
				}
				for range 2 {
					size, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{Required: 2 << 30}, nil)
					if err != nil || size != 2<<30 {
						t.Errorf("%d bytes, %v", size, err)
					}
				}
				for _, r := range []drivebay.SizeRange{{Required: 3 << 30}, {Limit: 1 << 30}, {Required: 2, Limit: 1}} {
					if _, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), r, nil); !errors.Is(err, drivebay.ErrRange) {
						t.Errorf("range %+v: %v", r, err)
					}
				}
				got, err := s.stats(v, target(v, "pod"))
				if err != nil || got.Bytes.Total < 2<<30-2<<30/16 || s.of(v).CSIStatus != drivebay.CSIPublished || got.Condition.Abnormal() {
					t.Errorf("%d bytes, %v, %s, %v", got.Bytes.Total, s.of(v).CSIStatus, got.Condition.Message(), err)
				}
			})
		}
	}
}

// TestProbesWakeNobody: a disk that nobody reads is not read by us either; an
// idle machine runs no program, and its volumes are no news.
func TestProbesWakeNobody(t *testing.T) {
	onStand(t, func(s *stand) {
		a, b := s.apart(drivebay.TypeHDD)
		s.must(s.stage(a), s.stage(b))
		time.Sleep(2 * time.Minute)
		before, seq := s.sim.Stats(), s.e.Volumes().Seq
		kernel := s.drive(a).Kernel.Completed
		time.Sleep(time.Hour)
		after := s.sim.Stats()
		if after.Runs != before.Runs {
			t.Errorf("%d programs ran", after.Runs-before.Runs)
		}
		if now := s.drive(a).Kernel.Completed; now != kernel {
			t.Errorf("%d requests went to a disk that nobody uses", now-kernel)
		}
		if now := s.e.Volumes().Seq; now != seq {
			t.Errorf("the set has changed %d times", now-seq)
		}
	})
}
