package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/internal/backoff"
)

// Reading is the request and the result of one reading of a drive.
type Reading struct {
	Of          *Tracked
	Life        int    // of the drive when the reading began
	ReadContent bool   // the reading also reads what is written on the drive
	Routine     bool   // the content was known before and may be overwritten since
	Changed     uint64 // Kernel.Changed before the reading began
	Proof       *kernellog.Proof
	evidence.Result
}

// ErrOtherDrive marks an answer of another drive than the listed one: the drives were
// swapped, and the uevents have not arrived yet.
var ErrOtherDrive = errors.New("another drive answered")

// NoteReading records that the content of a drive still has to be read, and how often that
// has failed. A drive in standby has not failed, and a routine read that brings nothing
// leaves the known content valid.
func (t *Tracked) NoteReading(r Reading) {
	unread := r.ReadContent && (r.Content == nil && !r.Routine || r.Content != nil && r.Content.Kind == drivebay.ContentUnknown)
	t.Fresh = t.Fresh || unread
	switch {
	case !unread:
		t.Unread = 0
	case r.Evidence == nil || !r.Evidence.Standby:
		t.Unread++
	}
}

// DoubtTable holds back the damage of a partition table that only one reading has found, and reports that: the reading may have
// met a write of the table, which changes one copy after the other. The first reading of a drive is believed: no reading before it
// has found the table sound, and one of before a restart may have found it damaged.
func (t *Tracked) DoubtTable(c *drivebay.Content) (doubted bool) {
	was := t.tableDamage
	t.tableDamage = ""
	if c.TableDamage != "" {
		t.tableDamage = fmt.Sprint(c.TableSum, " ", c.TableDamage)
		doubted = t.tableDamage != was && t.Drive.Content.TableDamage == "" && t.Drive.Content.Kind != drivebay.ContentUnknown
	}
	if doubted {
		c.TableDamage, t.Fresh = "", true
	}
	return doubted
}

// TakeProof applies the result of a proof, and sets when the next one is due: in any case, because one that is due is read at once.
func (t *Tracked) TakeProof(r Reading, now time.Time) {
	if r.Proof == nil {
		return
	}
	if r.Proved == nil || errors.Is(r.Err, ErrOtherDrive) { // the drive is in standby, or does not answer, or another one did
		t.NextProof = now.Add(kernellog.ProofSoon)
		return
	}
	t.Kernlog.Resolve(r.Proof, *r.Proved)
	t.NextProof = now.Add(kernellog.ProofSoon)
	if r.Proved.All {
		t.proofsFailed = 0
		return
	}
	t.proofsFailed++
	t.NextProof = now.Add(backoff.Backoff{First: kernellog.ProofAgain, Most: kernellog.ProofRarest}.Wait(t.proofsFailed))
}
