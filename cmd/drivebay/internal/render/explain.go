package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// opinions are the explanations of a health without findings.
var opinions = map[drivebay.Health]string{
	drivebay.HealthGood:    "No health rule applies to the drive.",
	drivebay.HealthUnknown: "The health is not known: the drive does not answer, or has not been read yet.",
}

// Explain describes why a drive has its health: which rules, on which evidence, since
// when, what to do, and what could not be read.
func Explain(d *drivebay.Drive, s Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s  %s\n", s.paint(bold, Clean(d.Name)), s.Health(d.Health), Clean(headline(d)))
	if s.Machine.Hardware.Server() != "" {
		out.WriteString(wrapped("in "+Clean(s.Machine.Place(d.Slot)), "", s.Width))
	}
	out.WriteString("\n")
	out.WriteString(s.nowOfDrive(d))
	if d.IdentityIssue != "" {
		out.WriteString(wrapped("identity: "+Clean(d.IdentityIssue), "", s.Width) + "\n")
	}
	if d.Copy != "" {
		out.WriteString(wrapped("copy: "+Clean(d.Copy)+". Nothing is written to either drive. Find out which is which, then run `wipefs --all` on the copy, or pull it and run `drivebay forget` for it.", "", s.Width) + "\n")
	}
	if d.Status == drivebay.StatusOffline {
		fmt.Fprintf(&out, "The drive is gone from the kernel: last seen %s.\n\n", s.ago(d.LastSeen))
	}
	if len(d.Findings) > 0 {
		out.WriteString(s.findings(d, advised(d)))
	} else if text := opinions[d.Health]; text != "" {
		out.WriteString(text + "\n")
	}
	out.WriteString("\n" + s.looked(d) + s.notRead(d))
	return out.String()
}

// advised returns the findings of a drive, without advice if the drive leaves: what to
// do then is printed first.
func advised(d *drivebay.Drive) []drivebay.Finding {
	if d.Usage == drivebay.UsageInUse || d.Usage == drivebay.UsageUnknown {
		return d.Findings
	}
	out := slices.Clone(d.Findings)
	for i := range out {
		out[i].Advice = ""
	}
	return out
}

func headline(d *drivebay.Drive) string {
	var parts []string
	if model := strings.TrimSpace(d.Vendor + " " + d.Model); model != "" {
		parts = append(parts, model)
	}
	parts = append(parts, "serial "+dash(d.Serial))
	if d.Slot.Bay != "" {
		parts = append(parts, "bay "+place(d.Slot))
	}
	return strings.Join(parts, ", ")
}

// looked lists the evidence behind the health of a drive, and its age.
func (s Style) looked(d *drivebay.Drive) string {
	var p pairs
	ev := d.Evidence
	if ev != nil {
		p.add("asked", s.ago(ev.At)+", "+ev.Source)
		if ev.Standby {
			p.add("asleep", "the drive is in standby and was not woken")
		}
		p.add("its own verdict", ev.Verdict.String())
		p.add("temperature", celsius(ev.Temperature))
		addATA(&p, ev.ATA)
		addNVMe(&p, ev.NVMe)
		addSCSI(&p, ev.SCSI)
		if len(ev.SelfTests) > 0 {
			p.add("self-tests", fmt.Sprintf("%d in the log, the newest: %s %s", len(ev.SelfTests), ev.SelfTests[0].Kind, Clean(ev.SelfTests[0].Text)))
		}
	}
	if k := d.Kernel; k != nil {
		p.add("kernel", s.ago(k.At)+", "+kernelSays(k))
		for _, fs := range k.Filesystems {
			p.add("filesystem", fmt.Sprintf("%s on %s: %s", fs.FS, fs.Device, count(int(fs.Errors), "error", "errors")))
		}
		p.add("kernel log", Clean(k.LastLog))
	}
	if len(p.names) == 0 {
		return "Nothing has been read from the drive yet.\n"
	}
	return "Evidence:\n" + p.String("  ")
}

func addATA(p *pairs, a *drivebay.ATA) {
	if a == nil {
		return
	}
	if !a.SMARTSupported || !a.SMARTEnabled {
		p.add("SMART", map[bool]string{true: "switched off", false: "not supported"}[a.SMARTSupported])
	}
	p.add("attributes", fmt.Sprint(len(a.Attributes)))
	p.add("device statistics", fmt.Sprint(len(a.Statistics)))
	if a.ErrorCount != nil {
		p.add("error log", count(int(*a.ErrorCount), "error", "errors")+" over the lifetime of the drive")
	}
}

func addNVMe(p *pairs, n *drivebay.NVMe) {
	if n == nil {
		return
	}
	p.add("critical warning", fmt.Sprintf("0x%02x", n.CriticalWarning))
	p.add("spare", fmt.Sprintf("%d %%, threshold %d %%", n.AvailableSpare, n.SpareThreshold))
	p.add("used", fmt.Sprintf("%d %%", n.PercentageUsed))
	p.add("media errors", fmt.Sprint(n.MediaErrors))
}

func addSCSI(p *pairs, c *drivebay.SCSI) {
	if c == nil {
		return
	}
	if c.HasIE {
		p.add("exceptions", fmt.Sprintf("ASC 0x%02x, ASCQ 0x%02x", c.ASC, c.ASCQ))
	}
	p.add("grown defects", number(c.GrownDefects))
	p.add("pending defects", number(c.PendingDefects))
	for _, name := range []string{"read", "write", "verify"} {
		if e, ok := c.ErrorCounters[name]; ok {
			p.add(name+" errors", fmt.Sprintf("%d corrected, %d uncorrected", e.Corrected, e.Uncorrected))
		}
	}
}

// kernelSays returns the kernel's view in one line.
func kernelSays(k *drivebay.Kernel) string {
	var parts []string
	add := func(show bool, format string, args ...any) {
		if show {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(k.State != "", "state %s", k.State)
	add(k.SizeZero, "0 bytes long")
	add(k.OpenError != "", "cannot be opened: %s", k.OpenError)
	add(k.IOErrors != nil, "ioerr_cnt %s", number(k.IOErrors))
	add(k.IOTimeouts != nil, "iotmo_cnt %s", number(k.IOTimeouts))
	add(k.Frozen > 0, "%d requests waiting for %s", k.Inflight, drivebay.DurationText(k.Frozen))
	add(k.LaneStuck > 0, "a request of drivebay waits for %s", drivebay.DurationText(k.LaneStuck))
	add(k.MediaErrors24h > 0, "%d bad sectors in 24 h", k.MediaErrors24h)
	add(k.OtherErrors24h > 0, "%d other I/O errors in 24 h", k.OtherErrors24h)
	add(k.LeftErrors > 0, "%d of them from when the drive left", k.LeftErrors)
	add(k.Resets1h > 0, "%d resets in 1 h", k.Resets1h)
	if len(parts) == 0 {
		return "nothing unusual"
	}
	return Clean(strings.Join(parts, ", "))
}

// notRead lists what was asked for and could not be read: a verdict is only as good as
// its evidence.
func (s Style) notRead(d *drivebay.Drive) string {
	var lines strings.Builder
	if d.Evidence == nil {
		if d.Protocol == drivebay.ProtocolNone {
			return "\nA drive of this kind has no health pages: the kernel's own evidence is all there is.\n"
		}
		return "\nCould not be read:\n  all of its health pages\n"
	}
	for _, p := range d.Evidence.Problems {
		text := problem(p.Page, p.Text)
		if p.Expected {
			text += " (the drive does not list this page)"
		}
		lines.WriteString(wrapped(Clean(text), "  ", s.Width))
	}
	if lines.Len() == 0 {
		return ""
	}
	return "\nCould not be read:\n" + lines.String()
}
