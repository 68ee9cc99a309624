package state

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// Tracked holds the state of one drive in the manager.
type Tracked struct {
	Rec           drivebay.Record
	Drive         drivebay.Drive // as the next snapshot shows it
	Lane          *lane.Lane
	Kernlog       kernellog.Window
	FSErrorLogged bool      // the kernel log reports a filesystem error on it
	FSErrorsRead  time.Time // when the error counters of its filesystems were read
	Life          int       // grows each time the drive appears
	Present       bool
	Absent        time.Time // when this manager first missed the drive, by the clock that is never set; zero while it is present
	Judged        bool      // a verdict was given on evidence of the drive
	Reading       bool
	ReadingBegan  time.Time // when the last reading began
	NextReading   time.Time
	Failures      int    // readings in a row that failed
	absent        int    // readings in a row that found no device
	OpenError     string // error of the last reading
	// What our own commands added to ioerr_cnt and iotmo_cnt.
	OurErrors, OurTimeouts uint64
	PresentSince           time.Time // when this life began
	NextProof              time.Time // when a reading may next read to end log errors
	proofsFailed           int
	Fresh                  bool   // its content is unknown, or may have changed
	Unread                 int    // readings in a row that failed to read the content
	Written                bool   // drivebay wrote to it, and no reading has begun since
	Rereading              bool   // the reading under way is the first one since
	ContentReadAt          uint64 // Kernel.Changed before the content was read
	tableDamage            string // what the last reading found of its partition table
	CameFrom               string // the bay before this one, if it was moved
	RoundsAtRelease        int    // ticks in a row in which its health is at ReleaseAt or worse
	HeldBack               string // why it is not released automatically, as last reported
	// Recalled is true until the first reading by this daemon ends: its evidence is that of its record.
	Recalled     bool
	Asked        bool      // this daemon has had the kernel remove it, since it is REMOVING
	PastRead     bool      // Options.Past was asked about it
	loggedStored uint64    // Kernlog.Changes when they were last stored
	storedSum    string    // checksum of the record that was handed to the keeper, without telemetry
	storedAt     time.Time // when that was
}

// Begin starts a life of a drive: it is new, or back, or the daemon restarted. The kernel
// counts from zero again, or its count includes errors of our own commands, so earlier
// counters of the kernel are dropped from the history.
func (t *Tracked) Begin(now time.Time) {
	t.Life++
	t.Present, t.Reading, t.Fresh, t.NextReading = true, false, true, now
	t.PresentSince, t.NextProof, t.proofsFailed = now, now, 0
	t.Failures, t.absent, t.Unread, t.OpenError, t.OurErrors, t.OurTimeouts = 0, 0, 0, "", 0, 0
	if t.Lane.Occupied(now) > 0 {
		t.Lane = lane.New() // a command to the old device may never end; this is another device
	}
	if c := &t.Drive.Content; c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentOurs {
		c.Kind, c.Reason = drivebay.ContentUnknown, drivebay.NotRead // another machine may have written to it
	}
	for i, s := range t.Rec.History {
		counters := maps.Clone(s.Counters)
		maps.DeleteFunc(counters, func(key string, _ uint64) bool { return strings.HasPrefix(key, "kernel.") })
		t.Rec.History[i].Counters = counters
	}
}

// Several drives can have the same serial and world-wide name. The id belongs to the drive that had
// it first; the others get ids that contain their place. The manager recognizes the first drive by
// the block device, which the kernel never reuses, then by the UUIDs written on the drive, then by
// its place. Where none of these decides, no drive gets the id: its record stays in the snapshot as
// UNKNOWN, so that drivebay neither writes to the drive nor treats it as absent.

// suffixedID matches the ids of drives that share their names with others.
var suffixedID = regexp.MustCompile(`^(.+)-at-[0-9a-f]{8}(-\d+)?$`)

// BaseOf returns the id that follows from the drive's own names.
func (t *Tracked) BaseOf() string {
	if m := suffixedID.FindStringSubmatch(t.Drive.ID); m != nil && t.Drive.IdentityIssue != "" {
		return m[1]
	}
	return t.Drive.ID
}

// IsDevice reports whether a listed drive is the kernel device that t was listed as.
func (t *Tracked) IsDevice(d *drivebay.Drive) bool {
	return slices.ContainsFunc(d.Disks, func(disk drivebay.DiskIdentity) bool {
		return slices.Contains(t.Drive.Disks, disk) && (t.Present || disk.Seq != "")
	})
}

// testReportTime is how long a test that the daemon started counts as running before the drive
// itself reports it.
const testReportTime = time.Hour

// Testing reports whether a self-test is in progress. SAS drives report no percentage of it. A drive that
// was pulled tests nothing: its evidence is of before.
func (t *Tracked) Testing(now time.Time) bool {
	if !t.Present {
		return false
	}
	if t.Drive.Evidence.RunningTest() != nil {
		return true
	}
	started := policy.Later(t.Rec.LastShort, t.Rec.LastLong)
	return now.Sub(started).Abs() < testReportTime && t.ReadingBegan.Before(started.Add(time.Second))
}

// longestTest is how long a self-test may take: the largest hard disks need two days.
const longestTest = 3 * 24 * time.Hour

// NameSelfTest sets the kind of a running self-test that the drive does not report, if the daemon started
// it: since the reading before, which is old, or right before that one. The evidence of a record has no time.
func (t *Tracked) NameSelfTest(old *drivebay.Evidence) {
	ev := t.Drive.Evidence
	if ev.SelfTestProgress == nil || ev.SelfTestKind != "" || old == nil {
		return
	}
	started, since := policy.Later(t.Rec.LastShort, t.Rec.LastLong), policy.Later(old.At.Add(-time.Minute), ev.At.Add(-longestTest))
	switch {
	case started.Before(since): // a test of before, if the daemon has one in progress
		if old.SelfTestProgress != nil {
			ev.SelfTestKind = old.SelfTestKind
		}
	case started.Equal(t.Rec.LastLong):
		ev.SelfTestKind = string(host.SelfTestLong)
	default:
		ev.SelfTestKind = string(host.SelfTestShort)
	}
}

// MarkSelfTest records when the daemon started a self-test.
func (t *Tracked) MarkSelfTest(kind host.SelfTestKind, now time.Time) {
	switch kind {
	case host.SelfTestShort:
		t.Rec.LastShort = now
	case host.SelfTestLong:
		t.Rec.LastLong = now
	}
}

// A drive that shrank (a host protected area, a USB bridge or a RAID controller that shows
// less of it, a copy on a smaller drive) may lack the ends of its volumes: its partition
// table may name partitions in the hidden part. One that grew lacks nothing.

// Measure sets SizeIssue if a drive is smaller than its record or its partition table says.
func (t *Tracked) Measure() {
	d := &t.Drive
	t.Rec.FullSize = max(t.Rec.FullSize, t.Rec.Drive.Size, d.Size)
	if d.Serial == "" && d.WWN == "" || d.Removable && t.Rec.Claim == nil { // the id is not bound to one drive or medium
		t.Rec.FullSize = d.Size
	}
	switch {
	case d.Size > 0 && d.Size < t.Rec.FullSize:
		d.SizeIssue = fmt.Sprintf("it has %d bytes; before it had %d", d.Size, t.Rec.FullSize)
	case d.Size > 0:
		d.SizeIssue = d.Content.Beyond
	}
}

// WrittenSince reports whether a claimed drive was written to since its content was read. A
// drive without writes is not read again, so that it can stay in standby.
func (t *Tracked) WrittenSince() bool {
	return t.Rec.Claim != nil && t.Drive.Kernel != nil && t.Drive.Kernel.Changed != t.ContentReadAt
}

// NoteAbsence counts the readings in a row that found no device.
func (t *Tracked) NoteAbsence(err error) {
	t.absent++
	if !errors.Is(err, host.ErrGone) {
		t.absent = 0
	}
}

// MayBeLeaving reports whether only the last reading found no device. A device that is being
// removed cannot be opened a moment before sysfs stops listing it (Linux, block/genhd.c,
// del_gendisk), and a drive that was pulled is not BAD. A second such reading counts.
func (t *Tracked) MayBeLeaving() bool { return t.absent == 1 }

// NotReadYet reports whether a drive that can be read has not been read yet.
func (t *Tracked) NotReadYet() bool {
	return t.Drive.Evidence == nil && t.Drive.Protocol != drivebay.ProtocolNone
}

// ProofDue reports whether a reading should read now to end errors.
func (t *Tracked) ProofDue(now time.Time) bool {
	k := t.Drive.Kernel
	return t.Present && !t.NextProof.After(now) && k != nil && k.Frozen == 0 && !k.GivenUp() && t.Kernlog.ProofOf() != nil
}
