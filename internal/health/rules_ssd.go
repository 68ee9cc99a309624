package health

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// ssdRules judge ATA solid-state drives, whose attribute ids depend on the maker of the
// controller.
var ssdRules = []Rule{
	{
		Code: "SSDRetiredBlocks", Protocols: onATA, Types: onSSD,
		Suspect: "attribute 5 >= {ssdRetired} blocks, if its name says that it counts blocks",
		Bad:     "the same, and a prefail attribute is at or below its threshold, the number increased within 7 days, or the kernel reports I/O errors",
		Advice:  watch,
		Source:  "Meza et al., A Large-Scale Study of Flash Memory Failures in the Field, SIGMETRICS 2015; makers' attribute lists. Every drive retires some blocks",
		check: func(l *look) *hit {
			n, name := l.count(reallocated)
			if n < l.th.SSDRetired {
				return nil
			}
			p := l.since("ata.5", week)
			return l.joined(n, fmt.Sprintf("%s %d%s", name, n, plus(p, week)), p)
		},
	},
	{
		Code: "SSDUncorrectable", Protocols: onATA, Types: onSSD,
		Suspect: "attribute 187, 197 or 198 >= {ssdUncorrect}, if its name says that it counts such errors. 197 and 198 do not count where they repeat 5 and 196",
		Bad:     "the same, and a prefail attribute is at or below its threshold, the number increased within 7 days, or the kernel reports I/O errors",
		Advice:  watch,
		Source:  "Schroeder et al., Flash Reliability in Production, FAST 2016: uncorrectable errors come before failure",
		check:   ssdUncorrectable,
	},
	{
		Code: "SSDWearAttribute", Protocols: onATA, Types: onSSD,
		Suspect: "an attribute that by its name is the life left stands at or under the drive's own threshold",
		Bad:     "the same, and it leaves {wearLeft} % of the life or less",
		Advice:  "The flash is worn out, and the drive may turn read-only. Replace it: `drivebay replace DRIVE`.",
		Source:  "makers' attribute lists: 169, 173, 177, 201, 202, 231, 233, 245",
		check:   wearAttribute,
	},
}

// joined returns SUSPECT, or BAD where a prefail attribute, growth or the kernel confirms it.
func (l *look) joined(n uint64, text string, p past) *hit {
	switch prefail, _ := l.rows(func(a *drivebay.Attribute) bool { return a.Prefail && a.FailedNow && !usage[a.ID] }); {
	case len(prefail) > 0:
		return bad(n, "%s; and at or below the drive's own failure threshold: %s", text, list(prefail))
	case p.grown > 0:
		return bad(n, "%s", text)
	case l.kernelErrors():
		return bad(n, "%s, and the kernel reports I/O errors as well", text)
	}
	return suspect(n, "%s", text)
}

// kernelErrors reports whether the kernel met errors of the drive in the last 24 hours.
func (l *look) kernelErrors() bool {
	return l.k.MediaErrors24h > 0 || l.since(keyIOErrors, day).grown >= l.th.KernelIOErrors
}

// ssdUncorrectable judges the worst of three ids. Silicon Motion's firmware repeats the bad blocks
// of 5 and 196 as 197 and 198; flash has no sectors that wait for reallocation.
func ssdUncorrectable(l *look) *hit {
	moved, _ := l.count(reallocated)
	moves, _ := l.count(events)
	var n uint64
	var parts []string
	var grown past
	for _, m := range []struct {
		meaning
		key    string
		repeat uint64
	}{{uncorrect, "ata.187", 0}, {pending, "ata.197", moved}, {offline, "ata.198", moves}} {
		v, name := l.count(m.meaning)
		if v < l.th.SSDUncorrect || v == m.repeat {
			continue
		}
		p := l.since(m.key, week)
		grown.grown += p.grown
		n = max(n, v)
		parts = append(parts, fmt.Sprintf("%s %d%s", name, v, plus(p, week)))
	}
	if n == 0 {
		return nil
	}
	return l.joined(n, list(parts), grown)
}

// wearAttribute judges the life left by the drive's own threshold; WearUsed judges its value.
func wearAttribute(l *look) *hit {
	for _, a := range l.wearAttributes() {
		if a.FailedNow && !atStart(a) {
			h := suspect(100, "%s (%d) at %d, the drive's own threshold %d, raw %s", a.Name, a.ID, a.Value, *cmp.Or(a.Threshold, new(uint8)), rawText(a))
			if used, ok := usedBy(a, l.ev.ATA.Attributes); !ok || used+l.th.WearLeft >= 100 {
				h.severity = drivebay.HealthBad
			}
			return h
		}
	}
	return nil
}

func named(name string, parts []string) bool {
	name = plain(name)
	for _, p := range parts {
		if strings.Contains(name, p) {
			return true
		}
	}
	return false
}
