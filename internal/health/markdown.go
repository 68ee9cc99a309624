package health

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const intro = `# Health rules

This page is generated from the table of rules in the program: change the table, not the page.

A drive is **GOOD** when none of the rules below has a finding. Otherwise its health is the verdict of its worst finding:
**BAD** (replace the drive), **SUSPECT** (watch it, plan its replacement, put no new data on it) or **UNKNOWN** (the drive should
answer and does not). UNKNOWN ranks between GOOD and SUSPECT, because a drive that does not answer is not known to be healthy. A drive
without SMART, such as a virtual disk, is GOOD while the kernel reports no fault.

Each finding contains its evidence, for example ` + "`Reallocated_Sector_Ct 1176, +24 in 7 days`" + `.
`

const hysteresis = `
## Why a verdict does not flap

* A finding counts from the first assessment that makes it. Where the text of a rule requires several assessments in a row, it counts from the last of these.
* When the cause of a finding is gone or less severe, the finding remains unchanged until the cause has been gone for ` + "`clearAfter`" + `,
  or for ` + "`clearQuick`" + ` if the rule is marked *quick*. Until then the finding shows since when its cause is gone.
* UNKNOWN ends with the first answer.
* The rules judge counters that only grow by their value and by their growth: a disk that lost a few sectors years ago differs
  from a disk that loses sectors every day.
* An operator can acknowledge a SUSPECT finding, or a finding whose cause is gone: ` + "`drivebay drive acknowledge DRIVE`" + `. The finding counts again when
  its number grows or it turns BAD. A present BAD finding cannot be acknowledged. What is accepted falls with the number (not that of a
  temperature, which goes up and down), and where the number is of now or of a time (bad sectors of 24 h, pending sectors, errors of a filesystem, the error log, a self-test) it ends with the cause.

## What is not evidence

* The number of NVMe error log entries, SCSI non-medium errors, and the upper bits of attribute 188: sound drives have millions of these.
* Raw values of an attribute whose name does not match the usual meaning of its ID. On solid-state drives each maker assigns the IDs.
* Raw values that pack several numbers. Attributes 187, 10 and 184 of a hard disk count in their lowest 16 bits. Four equal bytes are
  four percentages. A 32-bit counter just below its maximum was decremented below zero. If attribute 5 of a solid-state drive is a multiple
  of 1024, it counts the sectors of whole blocks.
* A single pending sector, in one reading, on a hard disk with no other sign of damage: a power loss during a write leaves one on a sound disk.
* The history of temperature and use (attributes 4, 9, 12, 190, 192, 193, 194, 225).
`

const hangs = `
## How soon a hung drive is found

* A drive in use: requests wait in the kernel and none completes. drivebay reads this with every ` + "`poll.tick`" + ` and sends the drive
  no request. ` + "`KernelFrozen`" + ` appears within {frozenSuspect} and two ticks.
* An unused drive: no request waits in the kernel, which does not count pass-through commands such as those of drivebay
  (block/blk-mq.c, blk_account_io_start). The next command of drivebay, within ` + "`poll.evidence`" + `, gets no answer. ` + "`KernelSilent`" + `
  appears {silentSuspect} and one tick after that command, or later if so many drives hang that the commands wait for each other
  (` + "`poll.parallel`" + `). With less than {silentSuspect}, a sound disk that is spinning up would be SUSPECT.
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
		fmt.Fprintf(w, " Counts from the assessment number %d in a row.", r.Polls)
	}
	if r.Quick {
		fmt.Fprintf(w, " Quick: clears %s after its cause.", values["clearQuick"])
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
