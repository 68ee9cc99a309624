package volume_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// nvmeDrives are some NVMe drives of 10 GB.
func nvmeDrives(n int) hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: n, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
}

func rawVolume(b drivebay.Backing) drivebay.VolumeRequest {
	return drivebay.VolumeRequest{Block: true, Class: drivebay.Class{Backing: b, Wipe: drivebay.WipeNone, FSType: "ext4"}}
}

// flip changes bits of a block device behind the daemon's back.
func (s *stand) flip(device string, off int64, n int) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+device, false)
	s.must(err)
	defer disk.Close()
	b := make([]byte, n)
	_, err = disk.ReadAt(b, off)
	s.must(err)
	for i := range b {
		b[i] ^= 0x55
	}
	_, err = disk.WriteAt(b, off)
	s.must(err, disk.Sync())
}

// driveOf is the first drive of a volume.
func (s *stand) driveOf(v drivebay.Volume) drivebay.Drive {
	s.Helper()
	d, ok := s.mgr.Snapshot().Find(v.Location.Drives[0])
	if !ok {
		s.Fatalf("drive %s is not there", v.Location.Drives[0])
	}
	return *d
}

func severities(c drivebay.Condition, reason string) (out []drivebay.Severity) {
	for _, f := range c {
		if f.Reason == reason {
			out = append(out, f.Severity)
		}
	}
	return out
}

// onEach makes a raw LVM volume on each of three drives.
func onEach(s *stand) (all []drivebay.Volume) {
	s.Helper()
	for _, name := range []string{"one", "two", "three"} {
		r := rawVolume(drivebay.BackingLVM)
		r.Size.Required = 6 << 30 // no two on one drive
		all = append(all, s.make(name, r))
	}
	return all
}

// TestDamagedPhysicalVolume: whatever is damaged of the physical volume of one drive,
// its volumes are said to be out of LVM's reach, and the other drives' are seen as ever.
func TestDamagedPhysicalVolume(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct {
		at int64
		n  int
	}{"one byte of the label": {512 + 40, 1}, "no label": {512, 512}, "the metadata header": {4096 + 20, 2}, "the metadata text": {4608 + 10, 4}} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
				all := onEach(s)
				s.must(s.stage(all[1]))
				for _, v := range all[:2] {
					s.flip(s.driveOf(v).Name+"p1", damage.at, damage.n)
				}
				time.Sleep(2 * time.Minute)
				free, staged, other := s.of(all[0]), s.of(all[1]), s.of(all[2])
				if got := severities(free.Condition, "PhysicalVolumeUnreadable"); len(got) != 1 || got[0] != drivebay.SeverityInaccessible || free.OperationalStatus != drivebay.Inoperative {
					t.Errorf("the damaged volume is %v: %v", free.OperationalStatus, free.Condition)
				}
				if got := severities(staged.Condition, "PhysicalVolumeUnreadable"); len(got) != 1 || got[0] != drivebay.SeverityDegraded || staged.OperationalStatus != drivebay.OperationalUnknown {
					t.Errorf("the damaged volume that is staged is %v: %v", staged.OperationalStatus, staged.Condition)
				}
				if !strings.Contains(free.Condition.Message(), all[0].Location.Drives[0]) {
					t.Errorf("the drive is not named: %s", free.Condition.Message())
				}
				if other.Condition.Abnormal() || other.OperationalStatus != drivebay.Operative {
					t.Errorf("the sound volume is %v: %v", other.OperationalStatus, other.Condition)
				}
				s.must(s.stage(all[2]))
				// What is damaged after that on the sound drive shows as well: the report is alive.
				s.flip(s.driveOf(all[2]).Name+"p1", 512+40, 1)
				time.Sleep(2 * time.Minute)
				if is := s.of(all[2]); !is.Condition.Abnormal() {
					t.Error("a label that is damaged later is not seen")
				}
			})
		})
	}
}

// TestDamageMended: a label that is written back as it was ends the finding.
func TestDamageMended(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
		v := onEach(s)[0]
		s.flip(s.driveOf(v).Name+"p1", 512+40, 1)
		time.Sleep(2 * time.Minute)
		s.flip(s.driveOf(v).Name+"p1", 512+40, 1)
		time.Sleep(2 * time.Minute)
		if is := s.of(v); is.Condition.Abnormal() || is.OperationalStatus != drivebay.Operative {
			t.Errorf("the mended volume is %v: %v", is.OperationalStatus, is.Condition)
		}
		s.must(s.stage(v))
	})
}

// TestDamagedLeg: a mirror that has lost a label serves from the other drive; one that
// has lost one copy of its metadata is read from the other, and says so.
func TestDamagedLeg(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int64{"label": 512 + 40, "metadata": 4608 + 10} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, nvmeDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("mirror", rawVolume(drivebay.BackingMirror))
				s.flip(s.driveOf(v).Name+"p1", at, 1)
				time.Sleep(2 * time.Minute)
				is := s.of(v)
				if got := severities(is.Condition, "PhysicalVolumeUnreadable"); len(got) != 1 || got[0] != drivebay.SeverityDegraded {
					t.Errorf("the mirror is %v: %v", is.OperationalStatus, is.Condition)
				}
			})
		})
	}
}

// spoiled is an lvm that reports nothing, or exits with an error, once it is shown one
// of some devices, as long as it is on.
type spoiled struct {
	lvmRunner
	by   []string
	text string // on its output instead of an error
	on   atomic.Bool
	ran  atomic.Int32
}

type lvmRunner interface {
	Run(ctx context.Context, argv ...string) ([]byte, error)
}

func (r *spoiled) Run(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := r.lvmRunner.Run(ctx, argv...)
	if len(argv) < 2 || argv[1] != "fullreport" || !r.on.Load() {
		return out, err
	}
	r.ran.Add(1)
	for _, dev := range r.by {
		if bytes.Contains([]byte(strings.Join(argv, " ")+" "), []byte(dev+" ")) {
			if r.text != "" {
				return []byte(r.text), nil
			}
			return nil, errors.New("lvm: exit status 5")
		}
	}
	return out, err
}

// TestReportSpoiled: a drive on which lvm fails, or answers with what is no report,
// hides its own volumes and no others.
func TestReportSpoiled(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{ \"report\": [ { \"vg\": [", "Segmentation fault\n"} {
		onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
			all := onEach(s)
			bad := &spoiled{lvmRunner: s.sim, text: text, by: []string{"/dev/" + s.driveOf(all[0]).Name + "p1"}}
			s.lvm = bad
			s.start()
			bad.on.Store(true)
			time.Sleep(5 * time.Minute)
			if is := s.of(all[0]); len(severities(is.Condition, "PhysicalVolumeUnreadable")) == 0 || is.OperationalStatus == drivebay.Operative {
				t.Errorf("the volume on the drive that spoils it is %v: %v", is.OperationalStatus, is.Condition)
			}
			if is := s.of(all[1]); is.Condition.Abnormal() {
				t.Errorf("another is %v", is.Condition)
			}
			ran := bad.ran.Load()
			time.Sleep(10 * time.Minute)
			if n := bad.ran.Load() - ran; n > 50 {
				t.Errorf("%d reports in 10 minutes", n)
			}
			bad.on.Store(false)
			time.Sleep(2 * time.Minute)
			if is := s.of(all[0]); is.Condition.Abnormal() {
				t.Errorf("when lvm works again it is %v", is.Condition)
			}
		})
	}
}

// TestNoReport: what LVM said once is not believed for ever.
func TestNoReport(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
		all := onEach(s)
		bad := &spoiled{lvmRunner: s.sim, by: []string{""}}
		s.lvm = bad
		s.start()
		if is := s.of(all[0]); is.Condition.Abnormal() {
			t.Fatalf("before: %v", is.Condition)
		}
		bad.on.Store(true)
		time.Sleep(5 * time.Minute)
		for _, v := range all {
			if is := s.of(v); !strings.Contains(reasons(is.Condition), "LogicalVolumeUnknown") || is.OperationalStatus != drivebay.OperationalUnknown {
				t.Errorf("with no report it is %v: %v", is.OperationalStatus, is.Condition)
			}
		}
		s.start() // and one that was never made says nothing either
		for _, v := range all {
			if is := s.of(v); is.OperationalStatus != drivebay.OperationalUnknown {
				t.Errorf("after a start with no report it is %v: %v", is.OperationalStatus, is.Condition)
			}
		}
		bad.on.Store(false)
		time.Sleep(2 * time.Minute)
		if is := s.of(all[0]); is.Condition.Abnormal() || is.OperationalStatus != drivebay.Operative {
			t.Errorf("when lvm works again it is %v: %v", is.OperationalStatus, is.Condition)
		}
	})
}

// TestCreateWithoutReport: a volume that cannot be created because LVM fails gets the cause as its error.
func TestCreateWithoutReport(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
		bad := &spoiled{lvmRunner: s.sim, by: []string{""}}
		s.lvm = bad
		s.start()
		onEach(s)
		time.Sleep(10 * time.Second) // the reports of the creations are old
		bad.on.Store(true)
		r := rawVolume(drivebay.BackingLVM)
		r.Name, r.Size.Required = "four", 1<<30
		if _, err := s.e.CreateVolume(s.Context(), r); err == nil || strings.Contains(err.Error(), "panic") || !strings.Contains(err.Error(), "exit status 5") {
			t.Errorf("create without a report: %v", err)
		}
	})
}

// TestNoSpaceKnownWithoutReport: while LVM makes no report, how much space there is for its volumes is not known: no capacity is promised, and none is missing.
func TestNoSpaceKnownWithoutReport(t *testing.T) {
	t.Parallel()
	for _, backing := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			bad := &spoiled{lvmRunner: s.sim, by: []string{""}}
			s.lvm = bad
			s.start()
			r := rawVolume(backing)
			r.Size.Required = 1 << 30
			v := s.make("v", r)
			time.Sleep(time.Minute)
			bad.on.Store(true)
			unknown := func(what string, err error) {
				s.Helper()
				if !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "exit status 5") {
					s.Errorf("%s: %s: %v", backing, what, err)
				}
			}
			another := func() {
				s.Helper()
				r.Name, r.Source = "w", drivebay.Source{}
				_, err := s.e.CreateVolume(s.Context(), r)
				unknown("another", err)
				if r.Source.Volume = v.ID; backing == drivebay.BackingThin {
					_, err = s.e.CreateVolume(s.Context(), r)
					unknown("a copy", err)
				}
			}
			another() // LVM fails, and its last report is new enough
			time.Sleep(5 * time.Minute)
			another()
			_, err := s.e.Capacity(s.Context(), r.Class)
			unknown("capacity", err)
			_, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			unknown("a growth", err)
			_, err = s.e.Capacity(s.Context(), partitionOf(1<<30).Class)
			s.must(err)
			bad.on.Store(false)
			time.Sleep(2 * time.Minute)
			r.Source = drivebay.Source{}
			s.make("w", r)
		})
	}
}
