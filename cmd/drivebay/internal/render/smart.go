package render

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Smart describes the decoded health pages of a drive.
func Smart(d *drivebay.Drive, s Style) string {
	ev := d.Evidence
	if ev == nil {
		return fmt.Sprintf("drive %s: nothing has been read from the drive\n", d.ID)
	}
	var p pairs
	p.add("drive", Clean(d.Name+", "+headline(d)))
	p.add("read", s.ago(ev.At)+", "+ev.Source)
	if ev.Standby {
		p.add("asleep", "the drive is in standby and was not woken; the values are from before")
	}
	p.add("verdict", ev.Verdict.String())
	p.add("temperature", celsius(ev.Temperature))
	p.add("power-on", powerOn(ev.PowerOnHours))
	p.add("power cycles", number(ev.PowerCycles))
	if ev.PercentUsed != nil {
		p.add("endurance used", fmt.Sprintf("%d %%", *ev.PercentUsed))
	}
	p.add("written", byteCount(ev.BytesWritten))
	p.add("read by host", byteCount(ev.BytesRead))
	parts := []string{p.String("")}
	for _, part := range []string{smartATA(ev.ATA, s), smartNVMe(ev.NVMe, s), smartSCSI(ev.SCSI, s), selfTests(ev, s), s.notRead(d)} {
		if part != "" {
			parts = append(parts, strings.TrimPrefix(part, "\n"))
		}
	}
	return strings.Join(parts, "\n")
}

func byteCount(n *uint64) string {
	if n == nil {
		return ""
	}
	return Bytes(*n)
}

func smartATA(a *drivebay.ATA, s Style) string {
	if a == nil {
		return ""
	}
	var out []string
	if len(a.Attributes) > 0 {
		t := table{columns: []column{{head: "ID", right: true}, {head: "ATTRIBUTE"}, {head: "VALUE", right: true}, {head: "WORST", right: true}, {head: "THRESH", right: true}, {head: "KIND"}, {head: "FAILED"}, {head: "RAW"}}}
		for _, x := range a.Attributes {
			row := plain(fmt.Sprint(x.ID), x.Name, fmt.Sprint(x.Value), fmt.Sprint(x.Worst), dash(number(x.Threshold)),
				map[bool]string{true: "prefail", false: "old age"}[x.Prefail], "-", x.Text)
			if x.FailedNow {
				row[6] = cell{"now", red}
			} else if x.FailedPast {
				row[6] = cell{"past", yellow}
			}
			t.add(row...)
		}
		out = append(out, t.String(s))
	}
	if len(a.Statistics) > 0 {
		t := table{columns: []column{{head: "PAGE", right: true}, {head: "OFFSET", right: true}, {head: "VALUE", right: true}, {head: "DEVICE STATISTIC"}}}
		for _, x := range a.Statistics {
			t.add(plain(fmt.Sprint(x.Page), fmt.Sprint(x.Offset), fmt.Sprint(x.Value), x.Name)...)
		}
		out = append(out, t.String(s))
	}
	return strings.Join(append(out, errorLog(a.Errors, a.ErrorCount, s)...), "\n")
}

// errorLog returns a drive's own error log, or only the count of its errors.
func errorLog(list []drivebay.DriveLog, whole *uint64, s Style) []string {
	if len(list) == 0 {
		if whole == nil {
			return nil
		}
		return []string{"error log: " + count(int(*whole), "error", "errors") + " over the lifetime of the drive\n"}
	}
	t := table{columns: []column{{head: "ERROR", right: true}, {head: "AT HOUR", right: true}, {head: "LBA", right: true}, {head: "WHAT"}}}
	for _, e := range list {
		t.add(plain(fmt.Sprint(e.Number), fmt.Sprint(e.Hours), fmt.Sprint(e.LBA), e.Text)...)
	}
	return []string{t.String(s)}
}

func smartNVMe(n *drivebay.NVMe, s Style) string {
	if n == nil {
		return ""
	}
	var p pairs
	p.add("critical warning", fmt.Sprintf("0x%02x", n.CriticalWarning))
	p.add("available spare", fmt.Sprintf("%d %%, threshold %d %%", n.AvailableSpare, n.SpareThreshold))
	p.add("percentage used", fmt.Sprintf("%d %%", n.PercentageUsed))
	for _, row := range []struct {
		name  string
		value uint64
	}{
		{"data units read", n.DataUnitsRead}, {"data units written", n.DataUnitsWritten},
		{"host read commands", n.HostReads}, {"host write commands", n.HostWrites},
		{"controller busy minutes", n.BusyMinutes}, {"power cycles", n.PowerCycles},
		{"power-on hours", n.PowerOnHours}, {"unsafe shutdowns", n.UnsafeShutdowns},
		{"media errors", n.MediaErrors}, {"error log entries", n.ErrorLogEntries},
		{"minutes too warm", uint64(n.WarningTempTime)}, {"minutes critically hot", uint64(n.CriticalTempTime)},
	} {
		p.add(row.name, fmt.Sprint(row.value))
	}
	if n.WarningTemp > 0 {
		p.add("warning temperature", celsius(&n.WarningTemp))
	}
	if n.CriticalTemp > 0 {
		p.add("critical temperature", celsius(&n.CriticalTemp))
	}
	return strings.Join(append([]string{p.String("")}, errorLog(n.Errors, nil, s)...), "\n")
}

func smartSCSI(c *drivebay.SCSI, s Style) string {
	if c == nil {
		return ""
	}
	var p pairs
	if c.HasIE {
		p.add("informational exceptions", fmt.Sprintf("ASC 0x%02x, ASCQ 0x%02x", c.ASC, c.ASCQ))
	}
	p.add("grown defects", number(c.GrownDefects))
	p.add("pending defects", number(c.PendingDefects))
	p.add("non-medium errors", number(c.NonMedium))
	p.add("start-stop cycles", number(c.StartStops))
	p.add("trip temperature", celsius(c.TripTemperature))
	p.add("background scan status", number(c.BackgroundScan))
	out := p.String("")
	if len(c.ErrorCounters) == 0 {
		return out
	}
	t := table{columns: []column{{head: "ERRORS"}, {head: "FAST", right: true}, {head: "DELAYED", right: true}, {head: "REREADS", right: true}, {head: "CORRECTED", right: true}, {head: "INVOCATIONS", right: true}, {head: "PROCESSED", right: true}, {head: "UNCORRECTED", right: true}}}
	for _, name := range []string{"read", "write", "verify"} {
		if e, ok := c.ErrorCounters[name]; ok {
			t.add(plain(name, fmt.Sprint(e.CorrectedFast), fmt.Sprint(e.CorrectedDelayed), fmt.Sprint(e.Rereads), fmt.Sprint(e.Corrected),
				fmt.Sprint(e.Invocations), Bytes(e.Bytes), fmt.Sprint(e.Uncorrected))...)
		}
	}
	return strings.TrimPrefix(out+"\n"+t.String(s), "\n")
}

func selfTests(ev *drivebay.Evidence, s Style) string {
	var out string
	if ev.SelfTestProgress != nil {
		out = fmt.Sprintf("a %s is running, %d %% remaining\n", strings.TrimSpace(Clean(ev.SelfTestKind)+" self-test"), *ev.SelfTestProgress)
	}
	if len(ev.SelfTests) == 0 {
		return out
	}
	t := table{columns: []column{{head: "SELF-TEST"}, {head: "RESULT"}, {head: "AT HOUR", right: true}, {head: "LBA", right: true}, {head: "WHAT"}}}
	for _, x := range ev.SelfTests {
		row := plain(x.Kind, x.Result.String(), fmt.Sprint(x.Hours), dash(number(x.LBA)), x.Text)
		if x.Result == drivebay.SelfTestFailed || x.Result == drivebay.SelfTestFatal {
			row[1].color = red
		}
		t.add(row...)
	}
	return out + t.String(s)
}

// Pages returns every page of a drive as a hex dump.
func Pages(pages []drivebay.RawPage, s Style) string {
	var out strings.Builder
	for i, p := range pages {
		if p.Error != "" {
			out.WriteString(wrapped(Clean(problem(p.Page, p.Error)), "", s.Width))
			continue
		}
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s: %d bytes\n%s", s.paint(bold, Clean(p.Page)), len(p.Data), hex.Dump(p.Data))
	}
	return out.String()
}

// problem puts the page before the text, unless the text starts with it.
func problem(page, text string) string {
	if page == "" || strings.HasPrefix(text, page) {
		return text
	}
	return page + ": " + text
}
