package volume_test

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

func disksInBays() hostsim.Spec {
	return hostsim.Spec{
		Enclosures: []hostsim.Enclosure{{Name: "front", Kind: "ses", Bays: 6}},
		Drives:     []hostsim.Group{{Bays: "0-3", Enclosure: "front", Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "40GB"}},
	}
}

// duplicate has another drive of the machine come back with the serial and WWN of the
// drive of a volume, and returns what the duplicate's bay holds.
func (s *stand) duplicate(v drivebay.Volume) (bay string) {
	s.Helper()
	d := s.drive(v)
	for _, o := range s.mgr.Snapshot().Drives {
		if o.ID != d.ID && o.Status == drivebay.StatusOnline && len(o.Uses) == 0 {
			s.must(s.sim.Inject(hostsim.Fault{Drive: o.Serial, Fault: "duplicate-serial", Args: hostsim.Args{"of": d.Slot.Bay}}))
			time.Sleep(time.Minute)
			return o.Slot.Bay
		}
	}
	s.Fatal("no other drive")
	return ""
}

// inBay is the drive that is in a bay.
func (s *stand) inBay(bay string) drivebay.Drive {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		if d.Slot.Bay == bay && d.Status == drivebay.StatusOnline {
			return d
		}
	}
	s.Fatalf("bay %s is empty", bay)
	return drivebay.Drive{}
}

// written is a sum of what is written on the drive in a bay, in the places where we write.
func (s *stand) written(bay string) (sum uint64) {
	s.Helper()
	d := s.inBay(bay)
	s.read(d, func(r io.ReaderAt) {
		var h maphash.Hash
		h.SetSeed(seed)
		b := make([]byte, 4<<20)
		for _, at := range []int64{0, 4 << 20, int64(d.Size) - 4<<20} {
			if _, err := r.ReadAt(b, at); err != nil {
				s.Fatal(err)
			}
			h.Write(b)
		}
		sum = h.Sum64()
	})
	return sum
}

// restart ends the daemon's view of the machine and begins another with the same
// records; between does what happens meanwhile.
func (s *stand) restart(between func()) {
	s.Helper()
	s.stop()
	s.stop = nil
	time.Sleep(time.Second) // what is to be remembered is
	next := store.Memory()
	records, err := s.st.Records()
	s.must(err, next.PutRecords(records))
	volumes, err := s.st.Volumes()
	s.must(err)
	for _, r := range volumes {
		s.must(next.PutVolume(r))
	}
	s.st = next
	between()
	var claim drivebay.Selectors
	s.must(claim.UnmarshalText([]byte("all")))
	mgr := drivemgr.New(s.sim, s.st, drivemgr.Options{Claim: claim})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error)
	go func() { done <- mgr.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-done })
	s.mgr = mgr
	time.Sleep(30 * time.Second)
	s.start()
}

// keepsItsDrive asserts that a volume is said to be on its drive in that bay and well,
// and that the duplicate is told apart, named and not used.
func (s *stand) keepsItsDrive(v drivebay.Volume, bay, other string) {
	s.Helper()
	first, second := s.inBay(bay), s.inBay(other)
	if first.ID != v.Location.Drives[0] || first.IdentityIssue == "" {
		s.Errorf("the first drive is %s (%q) and was %s", first.ID, first.IdentityIssue, v.Location.Drives[0])
	}
	if second.ID == first.ID || second.IdentityIssue == "" || second.Claim != nil || len(second.Refusals()) == 0 {
		s.Errorf("the duplicate is %s (%q), claim %v", second.ID, second.IdentityIssue, second.Claim)
	}
	is := s.of(v)
	if got := reasons(is.Condition); got != "IdentityConflict" || is.Health != drivebay.HealthGood || is.OperationalStatus != drivebay.Operative {
		s.Errorf("volume: %s, %v, %v: %s", got, is.OperationalStatus, is.Health, is.Condition.Message())
	}
	if err := s.e.ForgetVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
		s.Errorf("forget a volume that is here: %v", err)
	}
}

// TestDuplicateDrive: a second drive with the serial and WWN of one in use takes nothing
// from the volumes of the first, now, after a restart of the daemon and of the machine.
func TestDuplicateDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		for name, c := range map[string]drivebay.Class{
			"partition": {Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"},
			"lvm":       {Backing: drivebay.BackingLVM, Wipe: drivebay.WipeZero, FSType: "ext4"},
		} {
			v := s.make(name, drivebay.VolumeRequest{Class: c})
			s.must(s.stage(v), s.publish(v, "pod"))
			first := s.drive(v)
			other := s.duplicate(v)
			s.keepsItsDrive(v, first.Slot.Bay, other)
			s.inUse(v, target(v, "pod"), false)

			s.restart(func() {}) // with everything mounted
			s.keepsItsDrive(v, first.Slot.Bay, other)
			s.must(s.unpublish(v, "pod"), s.unstage(v))

			s.restart(func() { // both arrive anew, the duplicate first
				a, b := s.inBay(first.Slot.Bay), s.inBay(other)
				s.must(s.sim.Inject(hostsim.Fault{Drive: a.Name, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: b.Name, Fault: "vanish"}))
				s.sim.NextBoot()
				s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "return"}), s.sim.Inject(hostsim.Fault{Bay: first.Slot.Bay, Fault: "return"}))
			})
			s.keepsItsDrive(v, first.Slot.Bay, other)

			before := s.written(other)
			s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
			if s.written(other) != before {
				s.Error("the duplicate was written to")
			}
			s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "heal"}))
			time.Sleep(time.Minute)
			if d := s.inBay(first.Slot.Bay); d.ID != first.ID || d.IdentityIssue != "" {
				s.Errorf("alone again it is %s, %q", d.ID, d.IdentityIssue)
			}
		}
	})
}

// TestDuplicateAlone: the drive of a volume is pulled while its duplicate is here. The
// duplicate does not become the drive, whether the daemon goes on or starts again.
func TestDuplicateAlone(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}})
		first := s.drive(v)
		other := s.duplicate(v)
		alone := func(when string) {
			s.Helper()
			if d := s.inBay(other); d.ID == first.ID || d.IdentityIssue == "" {
				s.Errorf("%s: the duplicate is %s, %q", when, d.ID, d.IdentityIssue)
			}
		}
		s.must(s.sim.Inject(hostsim.Fault{Bay: first.Slot.Bay, Fault: "vanish"}))
		time.Sleep(time.Minute)
		alone("pulled")
		if got := reasons(s.of(v).Condition); got != "DiskRemoved" {
			s.Errorf("its drive is gone: %s", got)
		}
		s.restart(func() {})
		alone("the daemon started again")
		s.restart(func() {
			s.sim.NextBoot()
			s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Bay: other, Fault: "return"}))
		})
		alone("the machine started again")
		if err := s.e.ForgetVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "cannot be identified") {
			s.Errorf("forget a volume whose drive may be here: %v", err)
		}
		s.must(s.sim.Inject(hostsim.Fault{Bay: first.Slot.Bay, Fault: "return"}))
		time.Sleep(time.Minute)
		s.keepsItsDrive(v, first.Slot.Bay, other)
	})
}

// TestDuplicateAndOlderRecords: the records are of a time at which the drive held something else. The table on it tells it from its
// duplicate, and it is called a copy of nothing.
func TestDuplicateAndOlderRecords(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		r := requests()["partition"]
		old := s.make("old", r)
		first := s.drive(old)
		s.must(s.mgr.Refresh(s.Context()))
		time.Sleep(time.Minute)
		records, err := s.st.Records()
		s.must(err, s.e.DeleteVolume(s.Context(), old.ID))
		time.Sleep(time.Minute)
		for _, d := range s.mgr.Snapshot().Drives {
			s.must(s.mgr.Cordon(s.Context(), d.ID, d.ID != first.ID))
		}
		v := s.make("new", r)
		other := s.duplicate(v)
		s.restart(func() {
			s.must(s.st.PutRecords(records))
			a, b := s.inBay(first.Slot.Bay), s.inBay(other)
			s.must(s.sim.Inject(hostsim.Fault{Drive: a.Name, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: b.Name, Fault: "vanish"}))
			s.sim.NextBoot()
			s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "return"}), s.sim.Inject(hostsim.Fault{Bay: first.Slot.Bay, Fault: "return"}))
		})
		s.keepsItsDrive(v, first.Slot.Bay, other)
		for _, bay := range []string{first.Slot.Bay, other} {
			if d := s.inBay(bay); d.Copy != "" {
				s.Errorf("drive %s: %s", d.ID, d.Copy)
			}
		}
	})
}

// TestDuplicateInDoubt: which of two drives it is cannot be told while one of them
// cannot be read. Then the volume is neither gone nor forgotten, and neither drive is
// written to.
func TestDuplicateInDoubt(t *testing.T) {
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		t.Run(string(backing), func(t *testing.T) { duplicateInDoubt(t, backing) })
	}
}

func duplicateInDoubt(t *testing.T, backing drivebay.Backing) {
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: backing, Wipe: drivebay.WipeZero, FSType: "ext4"}})
		first := s.drive(v)
		other := s.duplicate(v)
		a, b := s.written(first.Slot.Bay), s.written(other)
		s.restart(func() {
			a, b := s.inBay(first.Slot.Bay), s.inBay(other)
			s.must(s.sim.Inject(hostsim.Fault{Drive: a.Name, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: b.Name, Fault: "vanish"}))
			s.sim.NextBoot()
			s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "return"}), s.sim.Inject(hostsim.Fault{Bay: first.Slot.Bay, Fault: "return"}))
			s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "eio"}))
		})
		is := s.of(v)
		if is.Location.Drives[0] != first.ID {
			s.Errorf("its record names drive %v", is.Location.Drives)
		}
		if got := reasons(is.Condition); strings.Contains(got, "DiskRemoved") || !strings.Contains(got, "IdentityConflict") {
			s.Errorf("%s: %s", got, is.Condition.Message())
		}
		if is.OperationalStatus == drivebay.Missing {
			s.Errorf("it is %v", is.OperationalStatus)
		}
		if err := s.e.ForgetVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
			s.Errorf("forget: %v", err)
		}
		if err := s.stage(v); err == nil {
			s.Error("it is staged from a drive that cannot be told")
		}
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
			s.Error("it is deleted from a drive that cannot be told")
		}
		s.must(s.sim.Inject(hostsim.Fault{Bay: other, Fault: "heal"}))
		time.Sleep(2 * time.Minute)
		if a != s.written(first.Slot.Bay) || b != s.written(other) {
			s.Error("a drive was written to")
		}
		if d := s.inBay(first.Slot.Bay); d.ID != first.ID {
			s.Errorf("the other is another and it is %s: %s", d.ID, d.IdentityIssue)
		}
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
	})
}
