package drivebay

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Facts is everything that the condition of a volume may stand on. A part that
// is nil, or a number that is nil, was not looked at: it accuses nobody and
// acquits nobody.
type Facts struct {
	Volume Volume  `json:"-"`
	Drives []Drive `json:"drives,omitempty"` // those of the volume, as known now
	// Complete says that Drives come from a complete listing of the machine: a
	// drive of the volume that is not among them is gone.
	Complete bool `json:"complete"`
	// Gone says that a complete listing of its drives' partitions or logical
	// volumes lacks the volume's.
	Gone bool `json:"gone,omitempty"`
	// Layouts says of drives of the volume how the kernel's partitions differ from those
	// of the partition table.
	Layouts map[string]string `json:"layouts,omitempty"`
	LV      *LVFacts          `json:"lv,omitempty"`
	FS      *FSFacts          `json:"fs,omitempty"`
	IO      *IOFacts          `json:"io,omitempty"`
	Mount   *MountFacts       `json:"mount,omitempty"`
}

// LVFacts is what LVM and device-mapper say of a logical volume.
type LVFacts struct {
	// Unreadable are drives of the volume whose physical volume LVM cannot read, and why;
	// InUse says that the device of such a volume is in use and goes on without LVM;
	// Unknown since when LVM has made no report at all, and why.
	Unreadable map[string]string `json:"unreadable,omitempty"`
	InUse      bool              `json:"inUse,omitempty"`
	Unknown    string            `json:"unknown,omitempty"`

	MissingPVs      []string `json:"missingPVs,omitempty"` // physical volumes that its group misses, as LVM names them
	Partial         bool     `json:"partial,omitempty"`    // a part of it is on no device that is there
	Inactive        bool     `json:"inactive,omitempty"`
	Suspended       bool     `json:"suspended,omitempty"`
	PoolFailed      bool     `json:"poolFailed,omitempty"`     // the thin pool cannot be used before it is repaired
	OutOfData       bool     `json:"outOfData,omitempty"`      // the thin pool says so itself
	MetadataLocked  bool     `json:"metadataLocked,omitempty"` // the thin pool's metadata is read-only
	DataPercent     *float64 `json:"dataPercent,omitempty"`
	MetadataPercent *float64 `json:"metadataPercent,omitempty"`
	SyncPercent     *float64 `json:"syncPercent,omitempty"`   // of a mirror: how much is the same on every leg
	RefreshNeeded   bool     `json:"refreshNeeded,omitempty"` // a leg of the mirror has failed writes and is not used any more
	Mismatches      uint64   `json:"mismatches,omitempty"`    // places where the legs differ, by the last check
}

// FSFacts is what is known of the filesystem without asking it anything now.
type FSFacts struct {
	Errors   uint64  `json:"errors,omitempty"`   // inconsistencies that the kernel counts
	ReadOnly bool    `json:"readOnly,omitempty"` // it became read-only although no call asked for it
	Shutdown bool    `json:"shutdown,omitempty"` // XFS gave it up
	Bytes    *uint64 `json:"bytes,omitempty"`
	Free     *uint64 `json:"free,omitempty"`     // to those who are not root
	Reserved uint64  `json:"reserved,omitempty"` // free to root alone
	// Full is from how many percent on, of what its users can fill, the filesystem counts
	// as full; 0: how full it is is no fault.
	Full       int     `json:"full,omitempty"`
	Inodes     *uint64 `json:"inodes,omitempty"`
	FreeInodes *uint64 `json:"freeInodes,omitempty"`
	Scrub      *Scrub  `json:"scrub,omitempty"`
}

// Scrub is the verdict of the read-only checks of a filesystem.
type Scrub struct {
	At      time.Time `json:"at"`                // of the newest
	Corrupt int       `json:"corrupt,omitempty"` // how many in a row, the newest among them, called it corrupted
	Mounted bool      `json:"mounted,omitempty"` // it was mounted meanwhile: a single check can be wrong
	Text    string    `json:"text,omitempty"`    // what the newest found
}

// IOFacts is how the volume's device answers.
type IOFacts struct {
	Frozen time.Duration `json:"frozen,omitempty"` // requests have been waiting so long and none came back
	Await  time.Duration `json:"await,omitempty"`  // how long a request takes lately
	Errors uint64        `json:"errors,omitempty"` // failed requests within a day whose cause is not proved gone
	// Unreadable counts the sectors of the volume, or of its thin pool, that a drive
	// cannot read; UnreadableOn are those drives.
	Unreadable   uint64   `json:"unreadable,omitempty"`
	UnreadableOn []string `json:"unreadableOn,omitempty"`
	ReadError    string   `json:"readError,omitempty"` // why our own small read of it failed
}

// MountFacts holds the paths at which the volume is staged and published against the
// mount table.
type MountFacts struct {
	Staging *PathFacts `json:"staging,omitempty"` // nil: not staged, or not looked at
	Target  *PathFacts `json:"target,omitempty"`  // of several targets, the first that is not mounted
}

// PathFacts is one path.
type PathFacts struct {
	Path      string `json:"path"`
	Mounted   bool   `json:"mounted"`             // the mount table has this volume there
	Dead      bool   `json:"dead,omitempty"`      // it has a device of the volume there that is gone
	Other     string `json:"other,omitempty"`     // what it has there instead
	ReadError string `json:"readError,omitempty"` // why reading it failed
}

// Condition is what is wrong with a volume, worst first, one finding a severity
// and reason. Nothing is known to be wrong with an empty one.
type Condition []VolumeFinding

// VolumeFinding is one thing that is wrong with a volume.
type VolumeFinding struct {
	Severity Severity `json:"severity"`
	Reason   string   `json:"reason"`  // CamelCase, for machines
	Message  string   `json:"message"` // evidence, drives and the next step, for people
}

// Limits of a condition. Reason and message travel in every answer of a list.
const (
	maxConditionFindings = 16
	maxConditionReason   = 256  // bytes
	maxConditionMessage  = 1024 // bytes
	maxConditionWord     = 64   // bytes of a name that came from elsewhere
	maxConditionText     = 320  // bytes of the evidence of one finding
	maxConditionLegs     = 3    // drives named in one message
)

// ConditionOf judges the facts by the table of rules. It reads no clock, file or
// device: the same facts are the same condition everywhere.
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
		c = append(c, VolumeFinding{Severity: r.Severity, Reason: r.Reason, Message: l.message(r, h)})
	}
	slices.SortStableFunc(c, func(a, b VolumeFinding) int { return cmp.Compare(b.Severity, a.Severity) })
	return c[:min(len(c), maxConditionFindings)]
}

// Abnormal says whether anything is wrong.
func (c Condition) Abnormal() bool { return len(c) > 0 }

// Severity is that of the worst finding.
func (c Condition) Severity() Severity {
	if len(c) == 0 {
		return SeverityNone
	}
	return c[0].Severity
}

// Message says it in one line, for those who have no room for a list. Each reason is
// named once.
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

// plain makes a short legal word of anything: valid UTF-8 without control
// characters.
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

// clip cuts a string at a rune so that it has no more than limit bytes.
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
