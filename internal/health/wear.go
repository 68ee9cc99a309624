package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// wear is how much of its rated endurance a solid-state drive has used, in percent, and what says so.
type wear struct {
	used uint64
	says string
}

// wear returns the wear of a drive. The standardized percentage counts more than any attribute, except
// a percentage of 0: firmware also reports 0 where it does not fill the field, and Phison's reports it
// again once all of the life is used (Kingston A400, 1,100 erase cycles and more).
func (l *look) wear() (wear, bool) {
	used, standard := l.counters[keyPercentUsed]
	if standard && used > 0 {
		return wear{used, fmt.Sprintf("%d %% of the rated endurance used", used)}, true
	}
	if w, ok := l.wearByAttribute(); ok {
		return w, true
	}
	return wear{used, fmt.Sprintf("%d %% of the rated endurance used", used)}, standard
}

// Used returns the percentage of the rated endurance that a solid-state drive has used, by the best of its
// sources.
func Used(in Input) (percent uint64, ok bool) {
	w, ok := newLook(in, Thresholds{}).wear()
	return w.used, ok
}

// wearSources are the attributes that show wear, the most reliable first: those that are a percentage
// by their name, those that rate erase cycles, and Media_Wearout_Indicator, which is the customary name
// of 233 also where firmware uses that id for something else.
var wearSources = []struct {
	ids   []uint8
	names []string
}{
	{[]uint8{231, 202, 169, 209, 233, 245}, []string{"lifeleft", "lifetimeleft", "lifetimeremain", "liferemain", "remaininglife", "lifeused", "lifetimeused"}},
	{[]uint8{173, 177}, []string{"wearleveling"}},
	{[]uint8{169, 173}, []string{"erasec"}},
	{[]uint8{177, 233}, []string{"wearout"}},
	{[]uint8{201}, []string{"lifetimeremain"}}, // SK hynix: always 100
}

// wearAttributes returns the attributes of a drive that show wear, the most reliable first.
func (l *look) wearAttributes() []*drivebay.Attribute {
	var out []*drivebay.Attribute
	if l.ev.ATA == nil || l.kind != drivebay.TypeSSD {
		return nil
	}
	for _, source := range wearSources {
		for _, id := range source.ids {
			for i := range l.ev.ATA.Attributes {
				if a := &l.ev.ATA.Attributes[i]; a.ID == id && named(a.Name, source.names) {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// wearByAttribute returns the wear by the first attribute that can be believed.
func (l *look) wearByAttribute() (wear, bool) {
	cycles := l.eraseCycles()
	for _, a := range l.wearAttributes() {
		used, ok := usedBy(a, l.ev.ATA.Attributes)
		if !ok || used >= 50 && cycles > 0 && cycles < freshCycles {
			continue
		}
		if a.Value == 0 && cycles == 0 && l.counters[keyPercentUsed] == 0 && used >= 50 {
			continue // a value that the firmware does not fill
		}
		return wear{used, fmt.Sprintf("%s (%d) at %d, raw %s: %d %% of the rated endurance used", a.Name, a.ID, a.Value, rawText(a), used)}, true
	}
	return wear{}, false
}

// freshCycles is a number of erase cycles below which no flash is worn out: the weakest, QLC, is rated
// at some hundred.
const freshCycles = 150

// eraseCycles returns the erase cycles of the flash by the attributes that count them, 0 without one.
func (l *look) eraseCycles() (cycles uint64) {
	if l.ev.ATA == nil {
		return 0
	}
	for i := range l.ev.ATA.Attributes {
		a := &l.ev.ATA.Attributes[i]
		counts := a.ID == 173 || a.ID == 177 || a.ID == 167 || a.ID == 168 || a.ID == 169 || a.ID == 165
		if counts && named(a.Name, []string{"erase", "wearleveling", "pecycle"}) && !named(a.Name, []string{"fail"}) && a.Count < 1<<20 {
			cycles = max(cycles, a.Count)
		}
	}
	return cycles
}

// usedBy returns the percentage that an attribute says is used.
//
// The value of most counts down from 100. Firmware of Phison and SK hynix also counts up; value and raw
// value that add up to 100 do not tell which of the two is the life left.
func usedBy(a *drivebay.Attribute, all []drivebay.Attribute) (uint64, bool) {
	name, value, worst := plain(a.Name), uint64(a.Value), uint64(a.Worst)
	switch {
	case strings.Contains(name, "lifeused"), strings.Contains(name, "lifetimeused"):
		return a.Count, a.Count <= 255
	case a.ID == 231 && a.Count <= 100 && ofPhison(all): // the raw value is the life left, whichever way the value counts
		return 100 - a.Count, true
	case !a.NoValue && strings.Contains(name, "wearout") && worst > 0 && worst < value: // life left never rises: it counts up
		return value, true
	case a.ID == 209: // Indilinx, which has no normalized values
		return 100 - min(a.Count, 100), true
	case value > 100, a.NoValue:
		return 0, false
	}
	return 100 - value, true
}

// ofPhison reports whether attributes are those of Phison's firmware.
func ofPhison(all []drivebay.Attribute) bool {
	return slices.ContainsFunc(all, func(a drivebay.Attribute) bool { return a.ID == 173 && named(a.Name, []string{"maxavgerase"}) })
}
