package health

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const intro = `# Health rules

This page is written by the program from its own table of rules; change the table, not the page.

A drive is **GOOD** when no rule below has anything to say. Otherwise it is as bad as its worst finding:
**BAD** (replace it), **SUSPECT** (watch it, plan its replacement, put nothing new on it) or **UNKNOWN** (it should
answer and does not). UNKNOWN ranks between GOOD and SUSPECT: silence is not health. A drive that has no SMART at all, such as
a virtual disk, is GOOD as long as the kernel's own evidence is clean.

Every finding names its evidence, for example ` + "`Reallocated_Sector_Ct 1176, +24 in 7 days`" + `.
`

const hysteresis = `
## Why a verdict does not flap

* A finding stands from its first round on. A rule marked *rounds* wants to be true in so many rounds in a row.
* A finding whose cause is gone, or has become less, stands as it was until the cause stayed away for ` + "`clearAfter`" + `;
  one that passes by nature (marked *quick*) for ` + "`clearQuick`" + `. Until then it says since when the cause is gone.
* UNKNOWN ends with the first answer.
* Counters that only grow are judged by their level and by their growth: a disk that once lost a few sectors and has been quiet
  since is not the disk that loses some every day.
* An operator can acknowledge a SUSPECT finding, or one whose cause is gone. It stays away until its number grows or it turns BAD. A
  present BAD finding cannot be acknowledged.

## What is not evidence

* The number of NVMe error log entries, SCSI non-medium errors, and attribute 188 above its lowest 16 bits: millions on sound drives.
* Raw values whose name does not say what the id usually counts. On a solid-state drive an id means what the maker likes.
* Raw values that pack several numbers. 187, 10 and 184 of a hard disk count in their lowest 16 bits; four bytes alike are
  four percentages; a 32-bit counter just below its end was decremented below zero; attribute 5 of a solid-state drive in multiples
  of 1024 counts the sectors of whole blocks.
* A single pending sector, once, on a hard disk with no other sign of damage: a write that lost its power leaves one on a sound disk.
* The history of heat and use (attributes 4, 9, 12, 190, 192, 193, 194, 225).
`

const hangs = `
## How soon a drive that hangs is found

* A drive in use: requests wait in the kernel and none comes back. This is read with every ` + "`poll.tick`" + ` and asks the drive
  nothing: ` + "`KernelFrozen`" + ` comes within {frozenSuspect} and two ticks.
* An unused drive: nothing waits in the kernel, which does not count questions such as ours among the requests
  (block/blk-mq.c, blk_account_io_start). Our next question, at most ` + "`poll.evidence`" + ` away, has no answer: ` + "`KernelSilent`" + `
  comes {silentSuspect} and one tick after it was asked, unless so many drives hang that our questions wait for each other
  (` + "`poll.parallel`" + `). Less than {silentSuspect} would accuse a sound disk that is just starting.
`

// Markdown writes the reference page of the rules with these thresholds.
func Markdown(w io.Writer, th Thresholds) error {
	b := bufio.NewWriter(w)
	b.WriteString(intro)
	values := map[string]string{}
	for _, f := range th.fields() {
		values[f.key] = f.text
	}
	b.WriteString("\n## Rules\n")
	for _, g := range groups {
		fmt.Fprintf(b, "\n### %s\n\n| rule | verdict | when |\n|---|---|---|\n", g.title)
		for _, r := range g.rules {
			r.conditions(b, values)
		}
		b.WriteString("\n")
		for _, r := range g.rules {
			r.remarks(b, values)
		}
	}
	b.WriteString("\n## Thresholds\n\nKeys of the section `thresholds` of the configuration file.\n\n| key | default | meaning |\n|---|---|---|\n")
	for _, f := range th.fields() {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.key, f.text, f.doc)
	}
	b.WriteString(fill(hangs, values))
	b.WriteString(hysteresis)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("health rules page: %w", err)
	}
	return nil
}

// conditions writes a table row for each verdict that a rule can give.
func (r *Rule) conditions(w io.Writer, values map[string]string) {
	name := "`" + r.Code + "`"
	for _, c := range [][2]string{{"SUSPECT", r.Suspect}, {"BAD", r.Bad}, {"UNKNOWN", r.Unknown}} {
		if c[1] != "" {
			fmt.Fprintf(w, "| %s | %s | %s |\n", name, c[0], strings.ReplaceAll(fill(c[1], values), "|", `\|`))
			name = ""
		}
	}
}

// remarks writes the advice, the source and the timing of a rule.
func (r *Rule) remarks(w io.Writer, values map[string]string) {
	fmt.Fprintf(w, "- `%s`: %s *Source: %s.*", r.Code, r.Advice, fill(r.Source, values))
	if r.Polls > 1 {
		fmt.Fprintf(w, " Wants %d rounds in a row.", r.Polls)
	}
	if r.Quick {
		fmt.Fprintf(w, " Quick: clears after %s.", values["clearQuick"])
	}
	io.WriteString(w, "\n")
}

// fill replaces each {key} by the value of its threshold.
func fill(text string, values map[string]string) string {
	for key, v := range values {
		text = strings.ReplaceAll(text, "{"+key+"}", v)
	}
	return text
}
