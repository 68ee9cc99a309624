package reference

import (
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
)

// usageWords holds what each usage means, and what the drive waits for in it.
var usageWords = map[drivebay.Usage]struct{ means, waits string }{
	drivebay.UsageUnknown:   {"the drive was never listed", "the first listing of the machine"},
	drivebay.UsageInUse:     {"volumes may be made on it, where it is claimed", "nothing"},
	drivebay.UsageReleasing: {"it has to leave: nothing new comes to it, what is on it serves on", "its volumes and snapshots, which `drivebay drive show` names, to be moved, released (`drivebay volume release`) or removed"},
	drivebay.UsageReleased:  {"nothing depends on it", "an operator, who approves that it is taken out"},
	drivebay.UsageRemoving:  {"the kernel is letting go of it, its bay is lit", "the kernel, which is asked again after a restart; a drive that it cannot let go of is pulled as it is"},
	drivebay.UsageRemoved:   {"it was taken out, or is back and not accepted: nothing is written to it", "its successor in the bay, which takes over its claim; the drive itself, once it is accepted again"},
	drivebay.UsageFailed:    {"the step under way failed; the cause is kept with the drive, its fault light is lit", "an operator"},
}

// usageWays holds what causes each event, in the order of the page.
var usageWays = []struct {
	event drivebay.UsageEvent
	by    string
}{
	{drivebay.UsageSeen, "the daemon"},
	{drivebay.UsageRelease, "`drivebay replace DRIVE`, `drivebay release DRIVE`, or the daemon for its health (`replacement.trigger`)"},
	{drivebay.UsageEmptied, "the daemon, when the last volume and snapshot is gone"},
	{drivebay.UsageApprove, "`drivebay replace DRIVE`, `drivebay approve DRIVE --yes`"},
	{drivebay.UsageTakenOut, "the daemon, when the kernel has the drive no more"},
	{drivebay.UsageFail, "the daemon"},
	{drivebay.UsageRetry, "`drivebay drive retry DRIVE`"},
	{drivebay.UsageKeep, "`drivebay cancel DRIVE`"},
	{drivebay.UsageForce, "`drivebay force-remove DRIVE --yes`, which loses what is on it"},
}

// Usage writes the page about the life of a drive.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# The life of a drive\n\nThis page is written by the program from its own table of moves; change the table, not the page.\n\n" +
		"Every move is an event with its cause: `drivebay events --drive DRIVE`. There is no state without a way out of it.\n\n" +
		"| usage | means | waits for | ways out |\n|---|---|---|---|\n")
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
