package reference

import (
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
)

// usageWords holds the meaning of each usage, and what the drive waits for in it.
var usageWords = map[drivebay.Usage]struct{ means, waits string }{
	drivebay.UsageUnknown:   {"the drive was not listed yet", "the first listing of the machine"},
	drivebay.UsageInUse:     {"the drive stays in the machine; if it is claimed, volumes can be created on it", "nothing"},
	drivebay.UsageReleasing: {"the drive is leaving: it gets no new volumes, and the volumes on it stay in use", "its volumes and snapshots to be moved, released (`drivebay volume release VOLUME`) or deleted, and the proof that no other volume is on it; `drivebay drive show DRIVE` lists what it waits for"},
	drivebay.UsageReleased:  {"nothing depends on the drive", "the approval of its removal by an operator"},
	drivebay.UsageRemoving:  {"the kernel is removing the device, and the light of the bay is on", "the kernel; drivebay requests the removal again after a restart. If the kernel cannot remove the device, pull the drive anyway"},
	drivebay.UsageRemoved:   {"the drive was removed, or is back and not accepted: drivebay writes nothing to it", "a new drive in the same bay, which inherits the claim; or the return of the drive and `drivebay accept DRIVE`"},
	drivebay.UsageFailed:    {"the present step failed; `drivebay explain DRIVE` shows the cause, and the fault light of the bay is on", "an operator"},
}

// usageWays holds what causes each event, in the order of the page.
var usageWays = []struct {
	event drivebay.UsageEvent
	by    string
}{
	{drivebay.UsageSeen, "the daemon, after the first listing"},
	{drivebay.UsageRelease, "`drivebay replace DRIVE`, `drivebay release DRIVE`, or the daemon because of its health (`replacement.trigger`)"},
	{drivebay.UsageEmptied, "the daemon, when the last volume and snapshot has left the drive"},
	{drivebay.UsageApprove, "`drivebay replace DRIVE` or `drivebay approve DRIVE --yes`"},
	{drivebay.UsageTakenOut, "the daemon, when the kernel has removed the device"},
	{drivebay.UsageFail, "the daemon, when the step fails"},
	{drivebay.UsageRetry, "`drivebay drive retry DRIVE`"},
	{drivebay.UsageKeep, "`drivebay cancel DRIVE`"},
	{drivebay.UsageForce, "`drivebay force-remove DRIVE --yes`, which loses the data on the drive"},
}

// Usage writes the page about the life of a drive.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# The life of a drive\n\nThis page is generated from the table of transitions in the program: change the table, not the page.\n\n" +
		"Every transition is an event with its cause: `drivebay events --drive DRIVE`. Every usage has at least one transition to another one.\n\n" +
		"| usage | meaning | waits for | transitions |\n|---|---|---|---|\n")
	for u := drivebay.UsageUnknown; u <= drivebay.UsageFailed; u++ {
		var ways []string
		for _, way := range usageWays {
			by := way.by
			if u == drivebay.UsageRemoved { // a drive that is back is used only after an operator accepts it
				by = "`drivebay accept DRIVE`"
			}
			if to, err := u.Next(way.event); err == nil {
				ways = append(ways, fmt.Sprintf("%v: %s", to, by))
			}
		}
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", u, usageWords[u].means, usageWords[u].waits, strings.Join(ways, "<br>"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
