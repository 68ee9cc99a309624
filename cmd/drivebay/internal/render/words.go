package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Bytes formats a size in powers of ten, as printed on drives.
func Bytes(n uint64) string { return drivebay.DecimalSize(n) }

// Binary formats a size in powers of two, as used for volumes.
func Binary(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	value, unit := float64(n), 0
	for value >= 1023.5 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value >= 99.95 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[unit]
}

func size(n uint64) string {
	if n == 0 {
		return "-"
	}
	return Bytes(n)
}

// ago formats a time, and how long ago it was.
func (s Style) ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z") + " (" + drivebay.DurationText(s.Now.Sub(t)) + " ago)"
}

func number[T int | uint8 | uint16 | uint32 | uint64 | int64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func celsius(t *int) string {
	if t == nil {
		return ""
	}
	return strconv.Itoa(*t) + " °C"
}

func wear(w *drivebay.Wear) string {
	if w == nil {
		return ""
	}
	return strconv.Itoa(w.PercentUsed) + " %"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// place returns where an operator finds a drive: "enclosure/bay", or the bay alone.
func place(slot drivebay.Slot) string {
	switch {
	case slot.Bay == "":
		return ""
	case slot.Enclosure == "":
		return slot.Bay
	}
	return slot.Enclosure + "/" + slot.Bay
}

// status returns the status column of a drive: "ONLINE", "OFFLINE,CORDONED".
func status(d *drivebay.Drive) string {
	text := d.Status.String()
	if d.Cordoned {
		text += ",CORDONED"
	}
	if d.Claim != nil {
		text += ",CLAIMED"
	}
	return text
}

// use describes in a few words what uses a drive.
func use(d *drivebay.Drive) string {
	var words []string
	for _, u := range d.Uses {
		word := cmp.Or(u.What, u.Kind)
		if u.Kind != "partition" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 && len(d.Uses) > 0 {
		words = []string{"partitions"}
	}
	text := strings.Join(words, ", ")
	if d.System {
		text = strings.TrimSpace("system " + text)
	}
	return text
}

// holds describes the content of a drive: "foreign gpt, ext4".
func holds(c drivebay.Content) string {
	var formats []string
	for _, s := range c.Signatures {
		if !slices.Contains(formats, s.Format) {
			formats = append(formats, s.Format)
		}
	}
	return strings.TrimSpace(c.Kind.String() + " " + strings.Join(formats, ", "))
}

// why returns the state of a drive that leaves; of others the first finding, or the
// problem of its identity.
func why(d *drivebay.Drive) string {
	switch {
	case d.Leaving != nil:
		text := d.Usage.String() + ": " + d.Leaving.Why
		if p := d.Leaving.Progress; p != nil {
			text = fmt.Sprintf("%v %d %%: %s", d.Usage, p.Percent(), d.Leaving.Why)
		}
		if d.Leaving.Cause != "" {
			text += "; " + d.Leaving.Cause
		}
		return text
	case len(d.Findings) > 0:
	case d.Copy != "" && d.IdentityIssue == "":
		return d.Copy
	case d.IdentityIssue == "" && d.Health == drivebay.HealthUnknown:
		return "not asked yet"
	default:
		return d.IdentityIssue
	}
	text := d.Findings[0].Text
	if d.Status == drivebay.StatusOffline && d.Findings[0].Severity != drivebay.HealthUnknown {
		text = "OFFLINE; " + text // a narrow screen has no other column for it
	}
	if more := len(d.Findings) - 1; more > 0 {
		text += fmt.Sprintf(" (+%d more)", more)
	}
	return text
}
