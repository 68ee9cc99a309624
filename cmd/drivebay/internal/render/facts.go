package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

const notLooked = "not checked"

// addFacts adds the facts behind the condition of a volume, its drives aside, and what
// was not looked at: that is no evidence either way.
func (s Style) addFacts(p *pairs, v *drivebay.VolumeView) {
	f := v.Facts
	if f == nil {
		return
	}
	switch {
	case f.Smaller != "":
		p.add("listing", "a part of it is missing: "+f.Smaller)
	case f.Gone:
		p.add("listing", "a complete listing of its drives lacks it")
	}
	if v.Location.LV != "" {
		p.add("LVM", lvSays(f.LV))
	}
	if v.HasFilesystem() {
		p.add("filesystem", fsSays(f.FS))
		if f.FS != nil {
			p.add("checked", s.scrubSays(f.FS.Scrub))
		}
	}
	p.add("reads and writes", ioSays(f.IO))
}

// phrases are the parts of a sentence that apply.
type phrases []string

func (l *phrases) add(so bool, format string, args ...any) {
	if so {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

func (l phrases) or(nothing string) string {
	if len(l) == 0 {
		return nothing
	}
	return Clean(strings.Join(l, ", "))
}

func lvSays(f *drivebay.LVFacts) string {
	if f == nil {
		return notLooked
	}
	var l phrases
	l.add(len(f.MissingPVs) > 0, "misses %s", strings.Join(f.MissingPVs, " and "))
	l.add(f.Partial, "a part is on no device")
	l.add(f.Inactive, "not active")
	l.add(f.Suspended, "suspended")
	l.add(f.PoolFailed, "the pool has failed")
	l.add(f.OutOfData, "the pool is out of space")
	l.add(f.MetadataLocked, "the pool's metadata is read-only")
	l.add(f.RefreshNeeded, "a leg is not in use")
	l.add(f.Mismatches > 0, "the legs differ in %d blocks", f.Mismatches)
	l.add(f.Changed != "", "changed by another program: %s", f.Changed)
	l = append(phrases{l.or("active and whole")}, percents(f)...)
	return l.or("")
}

func percents(f *drivebay.LVFacts) (l phrases) {
	for _, one := range []struct {
		value *float64
		text  string
	}{{f.DataPercent, "pool data %.1f %%"}, {f.MetadataPercent, "pool metadata %.1f %%"}, {f.SyncPercent, "mirror %.1f %% in sync"}} {
		if one.value != nil {
			l.add(true, one.text, *one.value)
		}
	}
	return l
}

func fsSays(f *drivebay.FSFacts) string {
	if f == nil {
		return notLooked
	}
	var l phrases
	l.add(f.Shutdown, "shut down by the kernel")
	l.add(f.ReadOnly, "turned read-only by the kernel")
	l.add(f.Errors > 0, "%s", count(int(f.Errors), "inconsistency", "inconsistencies"))
	if f.Bytes != nil && f.Free != nil {
		l.add(true, "%s of %s free", Binary(*f.Free), Binary(*f.Bytes))
	}
	if f.Inodes != nil && f.FreeInodes != nil {
		l.add(true, "%d of %d inodes free", *f.FreeInodes, *f.Inodes)
	}
	return l.or("no errors counted")
}

func (s Style) scrubSays(c *drivebay.Scrub) string {
	if c == nil {
		return "never"
	}
	text := "no corruption found"
	if c.Corrupt > 0 {
		text = count(c.Corrupt, "check", "checks in a row") + " found it corrupted"
	}
	if c.Text != "" {
		text += ": " + Clean(c.Text)
	}
	return s.ago(c.At) + ", " + text
}

func ioSays(f *drivebay.IOFacts) string {
	if f == nil {
		return notLooked
	}
	var l phrases
	l.add(f.Frozen > 0, "no request completed for %s", drivebay.DurationText(f.Frozen))
	l.add(f.Errors > 0, "%s in 24 h", count(int(f.Errors), "error", "errors"))
	l.add(f.ReadError != "", "a read by drivebay failed: %s", f.ReadError)
	l.add(f.Await > 0, "a request takes %s", drivebay.DurationText(f.Await))
	return l.or("nothing unusual")
}
