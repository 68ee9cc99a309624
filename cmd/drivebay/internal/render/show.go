package render

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Drive describes everything about one drive, except the numbers of its health pages.
func Drive(d *drivebay.Drive, s Style) string {
	var p pairs
	p.add("id", d.ID)
	p.add("identity", Clean(d.IdentityIssue))
	p.add("copy", Clean(d.Copy))
	p.add("name", Clean(d.Name))
	p.add("model", Clean(strings.TrimSpace(d.Vendor+" "+d.Model)))
	p.add("serial", Clean(d.Serial))
	p.add("firmware", Clean(d.Firmware))
	p.add("wwn", Clean(d.WWN))
	p.add("type", kind(d))
	p.add("size", fmt.Sprintf("%s (%d bytes, blocks of %d, physical %d)", size(d.Size), d.Size, d.LogicalBlock, d.PhysBlock))
	p.add("bay", bay(d.Slot))
	p.add("NUMA node", number(d.NUMANode))
	for _, path := range d.Paths {
		p.add("path", Clean(strings.Join(strings.Fields(path.Name+" "+path.Address+" "+path.State), "  ")))
	}
	p.add("status", s.status(d))
	p.add("health", s.Health(d.Health))
	p.add("usage", d.Usage.String())
	if l := d.Leaving; l != nil {
		p.add("leaves", Clean(l.Why)+", "+s.ago(l.Since))
		p.add("waits for", Clean(l.Cause))
		if l.Progress != nil {
			p.add("moved", s.progress(l.Progress))
		}
	}
	if su := d.Succeeds; su != nil && su.Taken.IsZero() {
		p.add("in the bay of", Clean(su.Of)+because(Clean(su.Against)))
	} else if su != nil {
		p.add("in place of", Clean(su.Of)+", "+s.ago(su.Taken))
	}
	p.add("claim", claim(d))
	p.add("system", yes(d.System))
	for _, u := range d.Uses {
		p.add("used by", Clean(strings.Join(strings.Fields(u.Kind+" "+u.Device+" "+u.What), " ")))
	}
	p.add("content", d.Content.Kind.String()+because(d.Content.Reason))
	for _, sig := range d.Content.Signatures {
		p.add("holds", signature(sig))
	}
	p.add("temperature", celsius(d.Temperature))
	p.add("power-on", powerOn(d.PowerOnHours))
	p.add("wear", wearLine(d.Wear))
	p.add("first seen", s.ago(d.FirstSeen))
	p.add("last seen", s.ago(d.LastSeen))
	if d.Evidence != nil {
		p.add("last asked", s.ago(d.Evidence.At))
	}
	out := p.String("")
	if len(d.Findings) > 0 {
		out += "\n" + s.findings(d, d.Findings)
	}
	return out
}

func (s Style) status(d *drivebay.Drive) string {
	c := statusCell(d)
	return s.paint(c.color, c.text)
}

func kind(d *drivebay.Drive) string {
	text := fmt.Sprintf("%s, %s", d.Type, d.Transport)
	if d.RPM > 0 {
		text += fmt.Sprintf(", %d rpm", d.RPM)
	}
	if d.ReadOnly {
		text += ", read-only"
	}
	if d.Removable {
		text += ", removable"
	}
	return text
}

func bay(slot drivebay.Slot) string {
	text := Clean(place(slot))
	if text == "" {
		return "not known"
	}
	if slot.Lit {
		text += " (the light is on)"
	}
	if slot.Status != "" && slot.Status != "OK" {
		text += ", which the enclosure calls " + Clean(slot.Status)
	}
	return text
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + Clean(reason)
}

func signature(sig drivebay.Signature) string {
	text := sig.Format
	if sig.Partition != "" {
		text = "partition " + sig.Partition + " " + text
	}
	if sig.Label != "" {
		text += fmt.Sprintf(" %q", sig.Label)
	}
	return Clean(strings.TrimSpace(text + " " + sig.UUID))
}

func powerOn(hours *uint64) string {
	if hours == nil {
		return ""
	}
	return fmt.Sprintf("%d h (%.1f years)", *hours, float64(*hours)/(24*365.25))
}

func wearLine(w *drivebay.Wear) string {
	if w == nil {
		return ""
	}
	text := wear(w) + " used"
	if w.DaysLeft != nil {
		text += fmt.Sprintf(", %.0f days left", *w.DaysLeft)
	}
	if w.ForecastBasis != "" {
		text += " (" + Clean(w.ForecastBasis) + ")"
	}
	if w.TotalWritten != nil {
		text += ", " + Bytes(*w.TotalWritten) + " written"
	}
	if w.BytesPerDay != nil {
		text += ", " + Bytes(*w.BytesPerDay) + " a day"
	}
	return text
}

// findings lists findings of a drive, each with its age and the next step. The commands in the
// advice name this drive.
func (s Style) findings(d *drivebay.Drive, list []drivebay.Finding) string {
	var out strings.Builder
	for _, f := range list {
		fmt.Fprintf(&out, "%s  %s\n", s.Health(f.Severity), s.paint(bold, Clean(f.Code)))
		out.WriteString(wrapped(Clean(f.Text), "  ", s.Width))
		if !f.Since.IsZero() {
			fmt.Fprintf(&out, "  since %s\n", s.ago(f.Since))
		}
		if !f.Gone.IsZero() {
			fmt.Fprintf(&out, "  the cause has been gone since %s; the finding ends when the cause stays away\n", s.ago(f.Gone))
		}
		if f.Advice != "" {
			out.WriteString(wrapped("what to do: "+Clean(strings.ReplaceAll(f.Advice, " DRIVE", " "+d.ID)), "  ", s.Width))
		}
	}
	return out.String()
}

// progress describes how much of the data has moved off a drive.
func (s Style) progress(p *drivebay.Progress) string {
	text := fmt.Sprintf("%d %% of %s", p.Percent(), size(p.Total))
	if left := p.End.Sub(s.Now); !p.End.IsZero() && left > 0 {
		text += ", " + drivebay.DurationText(left) + " remaining"
	}
	return text
}
