package drivemgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/store"
)

// TestOtherSerialSameName: a drive with another serial is another drive, also under a world-wide name that is known.
func TestOtherSerialSameName(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	id := tr.Drive.ID
	tr.Rec.Claim = &drivebay.Claim{By: drivebay.ClaimedByOperator}
	list := func(change func(*drivebay.Drive)) inventory.Listing {
		l := m.tracking.ListMachine(context.Background(), inventory.Options{})
		for i := range l.Drives {
			if l.Drives[i].Name == "sda" {
				d := l.Drives[i]
				d.Disks = slices.Clone(d.Disks)
				d.Disks[0].Seq = "4711"
				l.Drives[i] = d
				change(&l.Drives[i])
			}
		}
		l.Complete = true
		return l
	}
	l := list(func(*drivebay.Drive) {})
	l.Drives = slices.DeleteFunc(l.Drives, func(d drivebay.Drive) bool { return d.Name == "sda" })
	m.tracking.ApplyListing(l)
	if tr.Drive.Status != drivebay.StatusOffline {
		t.Fatal(tr.Drive.Status)
	}
	m.tracking.ApplyListing(list(func(d *drivebay.Drive) { d.Serial = "ANOTHER1"; d.Slot.Bay = "elsewhere" }))
	m.publish()
	for _, d := range m.Snapshot().Drives {
		if d.Serial == "ANOTHER1" && (d.ID == id || d.Claim != nil || d.IdentityIssue == "") {
			t.Errorf("drive of serial %s has the id %s and the claim %+v of another one; its issue is %q", d.Serial, d.ID, d.Claim, d.IdentityIssue)
		}
	}
}

// TestRemovalContinuesAfterFailedListing: a removal continues after a restart, also if the first listing failed.
func TestRemovalContinuesAfterFailedListing(t *testing.T) {
	machine, err := host.Recorded("../testdata/lab-recording")
	if err != nil {
		t.Fatal(err)
	}
	_, tr := oneTracked(t, "sda")
	rec := tr.Rec
	rec.Drive, rec.Usage = tr.Drive, drivebay.UsageRemoving
	rec.Leaving = &drivebay.Leaving{Since: time.Now()}
	st := store.Memory()
	if err := st.PutRecords(map[string]drivebay.Record{tr.Drive.ID: rec}); err != nil {
		t.Fatal(err)
	}
	m := New(machine, st, state.Options{})
	m.loadRecords()
	m.tracking.ApplyListing(inventory.Listing{Began: m.state.NextMoment(), Problems: []string{"list of block devices: read failed"}}) // as Observe returns it
	m.tracking.ApplyListing(m.tracking.ListMachine(context.Background(), inventory.Options{}))
	if is := m.state.Drives[tr.Drive.ID]; !is.Present || is.Rec.Usage != drivebay.UsageRemoving && is.Rec.Usage != drivebay.UsageFailed {
		t.Fatalf("%v", is.Rec.Usage)
	}
	m.publish()
	if !slices.ContainsFunc(m.Events(0, 0), func(e drivebay.Event) bool { return strings.Contains(e.Cause, "the removal continues after a restart") }) {
		t.Errorf("the kernel is never asked again: %d jobs", len(m.state.Jobs))
	}
}

// failing is a drive whose unreadable sectors the kernel logs when they are read.
type failing struct {
	badDisk
	log func(sector int64)
}

func (f *failing) ReadMedium(p []byte, off int64) (int, error) {
	n, err := f.badDisk.ReadMedium(p, off)
	for s := off / 512; err != nil && s < (off+int64(len(p)))/512; s++ {
		if f.bad[s] {
			f.log(s)
		}
	}
	return n, err
}

// TestBadSectorsStay: sectors that are still bad stay bad, however many there are: a proof reads until the third fault only, and
// the others do not end with time.
func TestBadSectorsStay(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	tr.Drive.Size, tr.Drive.LogicalBlock = 64<<20, 512
	bad, now := map[int64]bool{}, m.state.Machine.Now()
	log := func(s int64) {
		m.poll.AddLogLine(host.LogLine{At: now, Text: fmt.Sprintf("critical medium error, dev sda, sector %d op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", s)})
	}
	for s := int64(4096); s <= 5*4*4096; s += 4 * 4096 {
		bad[s] = true
		log(s)
	}
	d := &failing{badDisk{bad: bad}, log}
	k := &drivebay.Kernel{}
	count := func() []uint64 { k = &drivebay.Kernel{}; tr.Kernlog.Count(k, now); return k.BadSectors }
	for end := now.Add(60 * time.Hour); now.Before(end); now = tr.NextProof {
		prove(tr, d, now)
		if is := count(); len(is) != len(bad) {
			t.Fatalf("%d sectors are unreadable, the drive is said to have %d: %v", len(bad), len(is), is)
		}
	}
	delete(bad, 4096+4*4*4096) // the last one is written anew
	for end := now.Add(60 * time.Hour); now.Before(end); now = tr.NextProof {
		prove(tr, d, now)
	}
	if is := count(); len(is) != len(bad) {
		t.Errorf("%d sectors are unreadable, the drive is said to have %d: %v", len(bad), len(is), is)
	}
}
