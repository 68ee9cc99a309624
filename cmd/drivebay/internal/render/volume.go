package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// Volume describes everything about one volume; its facts name its drives.
func Volume(v *drivebay.VolumeView, snapshots []drivebay.VolumeSnapshot, s Style) string {
	var p pairs
	p.add("id", v.ID)
	p.add("name", Clean(v.Name))
	p.add("node", Clean(v.Node))
	p.add("size", fmt.Sprintf("%s (%d bytes)", Binary(v.Size), v.Size))
	p.add("mode", Clean(mode(&v.Volume)))
	p.add("UUID", Clean(v.FSUUID))
	p.add("backing", backing(v.Location))
	for _, key := range sorted(v.Parameters) {
		p.add("parameter", Clean(key+"="+v.Parameters[key]))
	}
	p.add("made from", madeFrom(v.Source))
	p.add("made", s.made(v.Created))
	for _, d := range find(known(v), v.Location.Drives) {
		p.add("drive", s.driveLine(d))
	}
	p.add("status", s.paint(operationalColor[v.OperationalStatus], v.OperationalStatus.String()))
	p.add("health", s.Health(v.Health))
	p.add("CSI status", v.CSIStatus.String())
	p.add("usage", v.Usage.String())
	if v.MoveBeforeUse {
		p.add("", "it is moved before it is mounted again")
	}
	p.add("under way", Clean(v.Work))
	for _, pub := range v.Publications {
		p.add(publication(pub))
	}
	addFailure(&p, s, v.Failure)
	addFailure(&p, s, v.UsageFailure)
	if v.Lost != nil {
		p.add("lost", Clean(fmt.Sprintf("%s, which drive %s could not read, %s", v.Lost, v.Lost.Drive, s.ago(v.Lost.At))))
	}
	s.addFacts(&p, v)
	for _, snap := range snapshots {
		p.add("snapshot", fmt.Sprintf("%s  %s  %s", Clean(snap.Name), snap.ID, s.made(snap.Created)))
	}
	return p.String("") + "\n" + s.condition(v.Condition)
}

// made formats a creation time; it is not known for what was found without a record.
func (s Style) made(at time.Time) string {
	if at.IsZero() {
		return "not known"
	}
	return s.ago(at)
}

// known returns the drives of the facts as a snapshot, for find.
func known(v *drivebay.VolumeView) *drivebay.Snapshot {
	if v.Facts == nil {
		return nil
	}
	return &drivebay.Snapshot{Drives: v.Facts.Drives, Complete: v.Facts.Complete}
}

func backing(l drivebay.Location) string {
	text := dash(string(backings[l.Kind]))
	switch {
	case l.Partition != "":
		text += " " + l.Partition
	case l.LV != "":
		text += " " + l.VG + "/" + l.LV
	}
	if l.Pool != "" {
		text += " in pool " + l.Pool
	}
	return Clean(text)
}

func madeFrom(source drivebay.Source) string {
	switch {
	case source.Snapshot != "":
		return "snapshot " + Clean(source.Snapshot)
	case source.Volume != "":
		return "volume " + Clean(source.Volume)
	}
	return ""
}

// driveLine describes one drive of a volume in one line.
func (s Style) driveLine(d *drivebay.Drive) string {
	if d.Status == drivebay.StatusUnknown && d.Serial == "" {
		return Clean(d.ID) + "  not known"
	}
	return fmt.Sprintf("%s  %s  %s  %s  %s", Clean(d.Name), Clean(d.ID), Clean(headline(d)), s.status(d), s.Health(d.Health))
}

func publication(p drivebay.Publication) (name, value string) {
	name, value = "published at", Clean(p.Path)
	if p.Staging {
		name = "staged at"
	}
	if p.ReadOnly {
		value += " (read-only)"
	}
	return name, value
}

func addFailure[S interface {
	~uint8
	fmt.Stringer
}](p *pairs, s Style, f *drivebay.Failure[S]) {
	if f == nil {
		return
	}
	next := map[drivebay.RetryRule]string{
		drivebay.RetryOnCall: "the next call tries again", drivebay.RetryOperator: "an operator has to decide: `drivebay volume retry VOLUME`, or `drivebay volume clear VOLUME` for one of two copies",
		drivebay.RetryTimed: "tried again at " + f.Next.UTC().Format("15:04:05Z"),
	}[f.Retry]
	p.add("failed in", fmt.Sprintf("%v, %s since %s, %s", f.Before, count(f.Tries, "try", "tries"), s.ago(f.Since), dash(next)))
	p.add("cause", Clean(f.Cause))
}

// condition lists the findings of a volume, worst first.
func (s Style) condition(c drivebay.Condition) string {
	if !c.Abnormal() {
		return "No fault is known.\n"
	}
	var out strings.Builder
	for _, f := range c {
		fmt.Fprintf(&out, "%s  %s\n", s.paint(severityColor[f.Severity], f.Severity.String()), s.paint(bold, Clean(f.Reason)))
		out.WriteString(wrapped(Clean(f.Message), "  ", s.Width))
	}
	return out.String()
}

// ExplainVolume describes what is wrong with a volume, the facts behind it, and the
// evidence of each of its drives.
func ExplainVolume(v *drivebay.VolumeView, s Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s  %s  %s, %s, %s\n\n", s.paint(bold, Clean(v.Name)), s.paint(operationalColor[v.OperationalStatus], v.OperationalStatus.String()),
		s.Health(v.Health), Binary(v.Size), mode(&v.Volume), backing(v.Location))
	out.WriteString(stepText(overview.OfVolume(v)) + s.condition(v.Condition))
	var p pairs
	addFailure(&p, s, v.Failure)
	addFailure(&p, s, v.UsageFailure)
	s.addFacts(&p, v)
	if len(p.names) > 0 {
		out.WriteString("\nEvidence:\n" + p.String("  "))
	}
	for i, id := range v.Location.Drives {
		title := "The drive below the volume"
		if n := len(v.Location.Drives); n > 1 {
			title = fmt.Sprintf("Drive %d of %d below the volume", i+1, n)
		}
		out.WriteString("\n" + s.paint(bold, title) + ":\n\n" + s.under(v, id))
	}
	return out.String()
}

// under explains one drive of a volume.
func (s Style) under(v *drivebay.VolumeView, id string) string {
	if v.Facts != nil {
		for i := range v.Facts.Drives {
			if v.Facts.Drives[i].ID == id {
				inner := s
				inner.Width = max(0, s.Width-len(indent))
				return indented(Explain(&v.Facts.Drives[i], inner))
			}
		}
	}
	text := "it is not known here"
	if v.Facts != nil && v.Facts.Complete {
		text = "a complete listing of the machine lacks it"
	}
	return indent + Clean(id) + ": " + text + "\n"
}

const indent = "  "

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	return out.String()
}
