package condition

import (
	"bufio"
	"fmt"
	"io"
)

const intro = `# What can be wrong with a volume

This page is generated from the table of rules in the program: change the table, not the page.

The condition of a volume is a list of findings, worst first. If the list is empty, no fault is known. Each finding has a severity, a
reason for machines and a message for people. The message names the drives (ID, serial, bay) and ends with the next step. Each pair of
severity and reason occurs at most once. A list has at most 16 findings, a message at most 1024 bytes.

| severity | means |
|---|---|
| DEGRADED | the volume can be used, but has a fault |
| INACCESSIBLE | the volume cannot be read, or cannot be written although it was requested writable |
| DATA_LOSS | data is permanently lost, or probably lost |

A fact that was not checked neither adds nor clears a finding: an answer that does not check the mounts neither reports nor clears
` + "`VolumeUnmounted`" + `. A fact that should be known and is not is a finding of its own. The rules send no request to a drive: they
use facts that the daemon has collected before.
`

const outro = `
## Health of a volume

The health of a volume is that of its worst drive. Mirrors in sync differ: while a leg is BAD or absent and another leg is better, the
health of the mirror is SUSPECT, because the mirror is degraded and its data is complete. A mirror that is not in sync has only one
complete copy, and the health of its worst drive.

## OperationalStatus

| status | when, the first that applies |
|---|---|
| REMOVED, REMOVING, STAGING | CSIStatus is REMOVED, REMOVING, CREATING, or FAILED in one of them |
| MISSING | a complete listing of the machine lacks the drives, the partition or the logical volume of the volume |
| INOPERATIVE | a finding above is INACCESSIBLE; findings about mounts do not count |
| UNKNOWN | the drives were not read or it is unknown whether they are present, LVM cannot read them or makes no report, or a stored status is UNKNOWN |
| MAINTENANCE | the volume is being expanded, or moved to another drive |
| OPERATIVE | none of the above |
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
	fmt.Fprintf(w, "\n%s", fillIn(remarks, "VOLUME", "DRIVE"))
}
