package render

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

var verdictColor = map[overview.Verdict]string{
	overview.Fine: green, overview.CannotTell: magenta, overview.Degraded: yellow, overview.AtRisk: red,
}

const (
	mostItems = 5 // of a part of the overview
	mostNames = 5 // of volumes on a drive

	itemIndent = 4 // of the text of an item
)

// AllFine is what a command prints that found nothing wrong with what it was asked about.
func AllFine(what string) string { return "all " + what + " are fine\n" }

// Overview draws the overview on one screen.
func Overview(o overview.Overview, s Style) string {
	var out strings.Builder
	name := Clean(o.Machine)
	if name != "" {
		name = s.paint(bold, name) + ": "
	}
	out.WriteString(name + s.paint(verdictColor[o.Verdict], o.Verdict.String()) + "\n")
	if o.Verdict == overview.Fine {
		out.WriteString(AllFine("drives and volumes"))
	}
	if o.Machine != "" {
		out.WriteString(Summary(o.Drives, s) + "\n")
	}
	if len(o.Volumes) > 0 {
		out.WriteString(volumeSummary(o.Volumes, s) + "\n")
	}
	s.part(&out, "Wrong", o.Wrong, "`drivebay status -x` lists all", s.shortText)
	s.part(&out, "Being done", o.Doing, "`drivebay drives` and `drivebay volumes` list all", s.shortText)
	s.part(&out, "Waits for a person", o.Waits, "`drivebay drives` and `drivebay volumes --abnormal` list all", waitText)
	out.WriteString("\n" + wrapped(s.paint(bold, "Next")+": "+Clean(o.Next), "", s.Width))
	return out.String()
}

// part draws some items. all: the commands that show the others.
func (s Style) part(out *strings.Builder, title string, items []overview.Item, all string, say func(overview.Item) string) {
	if len(items) == 0 {
		return
	}
	out.WriteString("\n" + s.paint(bold, title) + "\n")
	for n, i := range items {
		if n == mostItems {
			out.WriteString(wrapped(fmt.Sprintf("and %d more: %s", len(items)-n, all), "  ", s.Width))
			return
		}
		out.WriteString("  " + s.paint(s.stateColor(i), Clean(i.State)) + "  " + Clean(i.Title()) + "\n")
		out.WriteString(wrapped(say(i), strings.Repeat(" ", itemIndent), s.Width))
	}
}

// waitText says what an item waits for, and what to do.
func waitText(i overview.Item) string {
	if i.Text == "" || i.Next == "" {
		return Clean(i.Text + i.Next)
	}
	return Clean(i.Text + ": " + i.Next)
}

func (s Style) stateColor(i overview.Item) string {
	if i.State == drivebay.UsageReleased.String() || i.Verdict == overview.Fine {
		return bold
	}
	return verdictColor[i.Verdict]
}

// shortText is itemText, cut where it takes more than whyLines lines of a screen.
func (s Style) shortText(i overview.Item) string {
	text := s.itemText(i)
	all := lines(text, max(s.Width-itemIndent, narrowed))
	if s.Width <= 0 || len(all) <= whyLines {
		return text
	}
	all[whyLines-1] = cut(all[whyLines-1]+" …", s.Width-itemIndent)
	return strings.Join(all[:whyLines], " ")
}

// itemText says what is wrong with an item or what is done with it, and what depends on it.
func (s Style) itemText(i overview.Item) string {
	text := Clean(i.Text)
	if i.Progress != nil {
		text = s.progress(i.Progress) + ": " + text
	}
	if len(i.Unusable) > 0 {
		text += "; cannot be used: " + someNames(i.Unusable)
	}
	if len(i.Volumes) > len(i.Unusable) {
		text += "; holds " + someNames(i.Volumes)
	}
	return text
}

// someNames names the first volumes of a list.
func someNames(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return Clean(strings.Join(names[:mostNames], ", ")) + fmt.Sprintf(" and %d more", more)
	}
	return Clean(strings.Join(names, ", "))
}

// WrongLines returns one line for each thing that is wrong. Lines are not broken: scripts read them.
func WrongLines(items []overview.Item, s Style) string {
	var out strings.Builder
	for _, i := range items {
		fmt.Fprintf(&out, "%s: %s: %s\n", Clean(i.Title()), s.paint(s.stateColor(i), Clean(i.State)), cut(s.itemText(i), lineLimit))
	}
	return out.String()
}

// lineLimit is how long the text of a line for scripts is at most.
const lineLimit = 200
