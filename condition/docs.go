package condition

import (
	"bufio"
	"fmt"
	"io"
)

const intro = `# What can be wrong with a volume

This page is written by the program from its own table of rules; change the table, not the page.

The condition of a volume is a list of findings, worst first; with none, nothing is known to be wrong. Each has a severity, a
reason for machines and a message for people, which names the drives (id, serial, bay) and ends with the next step. Severity and reason
are there once at most; a list has 16 findings at most, a message 1024 bytes.

| severity | means |
|---|---|
| DEGRADED | the volume can be used, and something about it is not as it should be |
| INACCESSIBLE | it cannot be read, or cannot be written though it was asked for writable |
| DATA_LOSS | data is lost for good, or probably is |

What was not checked neither adds nor clears a finding: an answer that does not see the mounts neither reports nor clears
` + "`VolumeUnmounted`" + `. What should be known and is not is a finding of its own. No rule touches a disk: all of them read what was
gathered before.
`

const outro = `
## Health of a volume

It is the health of its worst drive. A mirror in sync is as good as its best leg, but SUSPECT while another leg is BAD or gone, and
never better than its worst leg otherwise: it is degraded, not lost. A mirror that is not in sync has no second copy to count on.

## OperationalStatus

| status | when, the first that applies |
|---|---|
| REMOVED, REMOVING, STAGING | CSIStatus is REMOVED, REMOVING, CREATING, or FAILED in one of them |
| MISSING | its last copy, its partition or its logical volume is gone by a complete listing |
| INOPERATIVE | a rule above finds it INACCESSIBLE; the mounts are left out, they differ by who looks |
| UNKNOWN | its drives were not looked at, or it is not known if they are there, or LVM cannot read them or makes no report, or a stored status is UNKNOWN |
| MAINTENANCE | it is grown, or moved off its drive |
| OPERATIVE | none of these |
`

// Markdown writes the reference page of all reasons.
func Markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString(intro)
	for i := range rules {
		r := &rules[i]
		if i == 0 || r.Section != rules[i-1].Section {
			section(b, r.Section)
		}
	}
	b.WriteString(outro)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("page of volume conditions: %w", err)
	}
	return nil
}

func section(w io.Writer, s Section) {
	fmt.Fprintf(w, "\n## %s\n\n| reason | severity | when | the message says |\n|---|---|---|---|\n", s)
	remarks := ""
	for i := range rules {
		r := &rules[i]
		if r.Section != s {
			continue
		}
		fmt.Fprintf(w, "| `%s` | %v | %s | %s |\n", r.Reason, r.Severity, r.When, r.Says)
		remarks += fmt.Sprintf("- `%s` %v: %s *Source: %s.*\n", r.Reason, r.Severity, r.Next, r.Source)
	}
	fmt.Fprintf(w, "\n%s", remarks)
}
