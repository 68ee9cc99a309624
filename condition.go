package drivebay

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Facts holds everything that the condition of a volume may depend on. A part or
// number that is nil was not read: it neither causes a finding nor excludes one.
type Facts struct {
	Volume Volume  `json:"-"`
	Drives []Drive `json:"drives,omitempty"` // the drives of the volume, as known now
	// Complete is true when Drives come from a complete listing of the machine: a
	// drive of the volume that is not among them is gone.
	Complete bool `json:"complete"`
	// Gone is true when a complete listing of the partitions or logical volumes of
	// its drives lacks the volume's.
	Gone bool `json:"gone,omitempty"`
	// Layouts holds, by drive id, how the kernel's partitions differ from those of the
	// partition table.
	Layouts map[string]string `json:"layouts,omitempty"`
	LV      *LVFacts          `json:"lv,omitempty"`
	FS      *FSFacts          `json:"fs,omitempty"`
	IO      *IOFacts          `json:"io,omitempty"`
	Mount   *MountFacts       `json:"mount,omitempty"`
}

// LVFacts is what LVM and device-mapper report about a logical volume.
type LVFacts struct {
	// Unreadable holds, by drive id, why LVM cannot read the physical volume there.
	// InUse is true when the device of such a volume is in use and works without LVM.
	// Unknown says since when LVM has made no report, and why.
	Unreadable map[string]string `json:"unreadable,omitempty"`
	InUse      bool              `json:"inUse,omitempty"`
	Unknown    string            `json:"unknown,omitempty"`

	MissingPVs      []string `json:"missingPVs,omitempty"` // physical volumes missing in its group, as LVM names them
	Partial         bool     `json:"partial,omitempty"`    // a part of it is on a device that is missing
	Inactive        bool     `json:"inactive,omitempty"`
	Suspended       bool     `json:"suspended,omitempty"`
	PoolFailed      bool     `json:"poolFailed,omitempty"`     // the thin pool cannot be used before it is repaired
	OutOfData       bool     `json:"outOfData,omitempty"`      // the thin pool reports no data space left
	MetadataLocked  bool     `json:"metadataLocked,omitempty"` // the thin pool's metadata is read-only
	DataPercent     *float64 `json:"dataPercent,omitempty"`
	MetadataPercent *float64 `json:"metadataPercent,omitempty"`
	SyncPercent     *float64 `json:"syncPercent,omitempty"`   // of a mirror: how much is in sync
	RefreshNeeded   bool     `json:"refreshNeeded,omitempty"` // a leg of the mirror failed writes and is left out
	Mismatches      uint64   `json:"mismatches,omitempty"`    // places where the legs differ, by the last check
}

// FSFacts is what is known about the filesystem without a new request to it.
type FSFacts struct {
	Errors   uint64  `json:"errors,omitempty"`   // inconsistencies that the kernel counted
	ReadOnly bool    `json:"readOnly,omitempty"` // it is read-only although no call requested that
	Shutdown bool    `json:"shutdown,omitempty"` // XFS has shut it down
	Bytes    *uint64 `json:"bytes,omitempty"`
	Free     *uint64 `json:"free,omitempty"`     // bytes free for users other than root
	Reserved uint64  `json:"reserved,omitempty"` // bytes free for root only
	// Full is the used percentage, of the space that users can fill, from which on the
	// filesystem counts as full; 0: a full filesystem is no finding.
	Full       int     `json:"full,omitempty"`
	Inodes     *uint64 `json:"inodes,omitempty"`
	FreeInodes *uint64 `json:"freeInodes,omitempty"`
	Scrub      *Scrub  `json:"scrub,omitempty"`
}

// Scrub is the result of the read-only checks of a filesystem.
type Scrub struct {
	At      time.Time `json:"at"`                // of the newest check
	Corrupt int       `json:"corrupt,omitempty"` // how many checks in a row, to the newest, found it corrupted
	Mounted bool      `json:"mounted,omitempty"` // it was mounted during the check: a single check can be wrong
	Text    string    `json:"text,omitempty"`    // what the newest check found
}

// IOFacts is how the volume's device responds to requests.
type IOFacts struct {
	Frozen time.Duration `json:"frozen,omitempty"` // for how long requests have waited and none completed
	Await  time.Duration `json:"await,omitempty"`  // how long a request takes at present
	Errors uint64        `json:"errors,omitempty"` // requests failed within a day, cause not proved gone
	// Unreadable counts the sectors of the volume, or of its thin pool, that a drive
	// cannot read. UnreadableOn holds the ids of these drives.
	Unreadable   uint64   `json:"unreadable,omitempty"`
	UnreadableOn []string `json:"unreadableOn,omitempty"`
	ReadError    string   `json:"readError,omitempty"` // why the daemon's small read of it failed
}

// MountFacts compares the paths at which the volume is staged and published with the
// mount table.
type MountFacts struct {
	Staging *PathFacts `json:"staging,omitempty"` // nil: not staged, or not checked
	Target  *PathFacts `json:"target,omitempty"`  // of several targets, the first that is not mounted
}

// PathFacts is what the mount table has at one path.
type PathFacts struct {
	Path      string `json:"path"`
	Mounted   bool   `json:"mounted"`             // the volume is mounted there
	Dead      bool   `json:"dead,omitempty"`      // a device of the volume that is gone is mounted there
	Other     string `json:"other,omitempty"`     // what is mounted there instead
	ReadError string `json:"readError,omitempty"` // why reading the path failed
}

// Condition lists what is wrong with a volume, worst first, with one finding for each
// pair of severity and reason. It is empty when no fault is known.
type Condition []VolumeFinding

// VolumeFinding is one thing that is wrong with a volume.
type VolumeFinding struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`  // CamelCase, for machines
	Message  string   `json:"message"` // evidence, drives and the next step, for people
}

// Limits of a condition. Every answer of a list carries reasons and messages.
const (
	maxConditionFindings = 16
	maxConditionReason   = 256  // bytes
	maxConditionMessage  = 1024 // bytes
	maxConditionWord     = 64   // bytes of a name from outside drivebay
	maxConditionText     = 320  // bytes of the evidence of one finding
	maxConditionLegs     = 3    // drives named in one message
)

// ConditionOf returns the condition that follows from the facts by the table of rules.
// It reads no clock, file or device: the same facts give the same condition everywhere.
func ConditionOf(f Facts) Condition {
	l := newLook(f)
	return l.findings()
}

func (l *look) findings() Condition {
	var c Condition
	for i := range conditionRules {
		r := &conditionRules[i]
		h := r.check(l)
		if h == nil {
			continue
		}
		l.worst = max(l.worst, r.Severity)
		at := len(c)
		if r.First {
			at = 0
		}
		c = slices.Insert(c, at, VolumeFinding{Severity: r.Severity, Reason: r.Reason, Message: l.message(r, h)})
	}
	slices.SortStableFunc(c, func(a, b VolumeFinding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c[:min(len(c), maxConditionFindings)]
}

// Abnormal reports whether anything is wrong.
func (c Condition) Abnormal() bool { return len(c) > 0 }

// Severity returns the severity of the worst finding.
func (c Condition) Severity() Severity {
	if len(c) == 0 {
		return SeverityNone
	}
	return c[0].Severity
}

// Message returns the condition in one line, for callers that have no room for a list.
// It names each reason once.
func (c Condition) Message() string {
	if len(c) == 0 {
		return "no fault is known"
	}
	named, also := []string{c[0].Reason}, ""
	for _, f := range c[1:] {
		if !slices.Contains(named, f.Reason) {
			named = append(named, f.Reason)
		}
	}
	if len(named) > 1 {
		also = clip(" Also: "+strings.Join(named[1:], ", "), maxConditionMessage/2)
	}
	return clip(c[0].Reason+": "+c[0].Message, maxConditionMessage-len(also)) + also
}

// plain returns a string as valid UTF-8 without control characters, cut to limit bytes.
func plain(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] // the rest is cut anyway
	}
	return clip(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), limit)
}

// clip cuts a string between two runes so that it has at most limit bytes.
func clip(s string, limit int) string {
	const dots = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + dots
}
