package reference

import (
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/events"
)

// eventWords holds, for each kind of event, what happened and what to do about it.
var eventWords = []struct {
	kind  drivebay.EventKind
	means string
	todo  string
}{
	{drivebay.EventAppeared, "a drive that was not known before is present", ""},
	{drivebay.EventVanished, "a complete listing of the machine lacks the drive", "its volumes are MISSING. If the drive was not pulled on purpose, check the bay, the cable and the power"},
	{drivebay.EventReturned, "an absent drive is back and was recognized", ""},
	{drivebay.EventRenamed, "the drive has another kernel name", ""},
	{drivebay.EventMoved, "the drive is in another bay", ""},
	{drivebay.EventHealth, "the health of the drive changed", "`drivebay explain DRIVE` shows the evidence and the next step"},
	{drivebay.EventFinding, "a health rule has a new finding on the drive", "`drivebay explain DRIVE`; docs/health-rules.md has all rules"},
	{drivebay.EventCleared, "a finding of the drive has ended", ""},
	{drivebay.EventIdentity, "two drives report the same identity or have the same content, or no longer do", "drivebay writes to neither drive. `drivebay drives` shows both; pull one of them"},
	{drivebay.EventResized, "the size of a drive changed", "nothing if the drive is larger. If it is smaller, drivebay writes nothing to it: docs/health-rules.md, DriveShrank"},
	{drivebay.EventSelfTest, "a self-test started or ended", ""},
	{drivebay.EventLocate, "an operator switched the light of a bay", ""},
	{drivebay.EventAcknowledge, "an operator acknowledged a finding of the drive", ""},
	{drivebay.EventCordon, "an operator cordoned or uncordoned the drive", ""},
	{drivebay.EventClaim, "the drive was claimed for volumes, or its claim was removed", ""},
	{drivebay.EventUsage, "the usage of the drive changed", "docs/drive-usage.md explains each usage and what it waits for"},
	{drivebay.EventNotReleased, "the health of the drive changed, and drivebay did not release it because the health of other drives behind the same part changed at the same time", "check the shared part: cable, backplane, controller. If the drive is the cause, run `drivebay release DRIVE`"},
	{drivebay.EventFaultLight, "the fault light of a bay was switched; it is on while work is needed at the bay", ""},
	{drivebay.EventReplaced, "a new drive replaced the removed drive of its bay and inherited its claim", ""},
	{drivebay.EventNotReplaced, "a drive is in the bay of a removed drive and does not replace it; the cause is in the event", "`drivebay claim DRIVE` accepts the drive; or insert the right drive"},
	{drivebay.EventWrongPulled, "a drive was pulled while another one was to be pulled", "put the drive back into its bay: drivebay recognizes it. Then pull the right drive"},
	{drivebay.EventSwapped, "two drives have changed bays", "nothing, if this was intended: drivebay identifies drives by their identity, not by their bay"},
	{drivebay.EventQuarantined, "a removed drive is back", "drivebay writes nothing to it. Pull it, or use it again with `drivebay accept DRIVE`"},
	{drivebay.EventForgotten, "the record of an OFFLINE drive was deleted, by an operator or after `poll.forgetAfter`", "nothing; a drive that comes back is a new drive"},
	{drivebay.EventStoreFailed, "the record store cannot be written: its disk is full, read-only, hangs or fails, or the file was removed or replaced", "`drivebay status` shows the cause; repair the disk of the state directory. Until then volumes can be staged and published, but not created, expanded or deleted"},
	{drivebay.EventStoreRecovered, "the record store can be written again, and the changes from memory were written to it", ""},
	{drivebay.EventStoreOlder, "the record store is older than the drives: a backup was restored, or the machine was rolled back", "`drivebay status` lists the volumes that were adopted from the drives. Volumes that were deleted after the backup are MISSING: give them up with `drivebay volume forget VOLUME --yes`"},
	{drivebay.EventVolumeCreated, "a volume was created", ""},
	{drivebay.EventVolumeFound, "a volume of drivebay was found on a drive and had no record", ""},
	{drivebay.EventVolumeDeleted, "a volume was deleted, or its record was deleted", ""},
	{drivebay.EventVolumeExpanded, "a volume was expanded", ""},
	{drivebay.EventVolumeFailed, "an operation on a volume failed", "`drivebay explain VOLUME` shows the cause and when it is tried again"},
	{drivebay.EventVolumeReleased, "an operator released a volume: its drive is removed without moving the volume", ""},
	{drivebay.EventVolumeMoved, "a volume was moved to another place: its drive is leaving, or the volume or the one before it on the drive needs room to expand", ""},
	{drivebay.EventVolumeDataLoss, "a drive cannot read some data of a volume that is moving off it, or an operator accepted the loss of that data", "`drivebay volume show VOLUME` lists the data. Read it again with `drivebay volume retry VOLUME`, or continue without it with `drivebay volume accept-loss VOLUME --yes`"},
	{drivebay.EventVolumeLeft, "data of a volume remains on a drive and belongs to no volume: an unfinished copy, or data that could not be wiped", "wipe the drive before you dispose of it"},
	{drivebay.EventVolumeHealed, "a volume was repaired; the event names the repair", "docs/repairs.md has all repairs"},
	{drivebay.EventVolumeNotHealed, "an automatic repair of a volume failed or needs an operator", "`drivebay explain VOLUME` shows the fault, `drivebay heal VOLUME --dry-run` the repairs that it needs"},
	{drivebay.EventVolumeAbnormal, "the condition of a volume has a new reason, or one got worse; `from` and `to` have the reasons before and now", "`drivebay explain VOLUME` shows the next step; docs/volume-conditions.md has all reasons"},
	{drivebay.EventVolumeRecovered, "the condition of a volume has been without findings for 30 s", ""},
	{drivebay.EventVolumeStaged, "a volume was staged: its filesystem was mounted at a staging path, or its block device was prepared", ""},
	{drivebay.EventVolumeUnstaged, "a volume was unstaged from a staging path", ""},
	{drivebay.EventSnapshotCreated, "a snapshot was created", ""},
	{drivebay.EventSnapshotDeleted, "a snapshot was deleted, or its record was deleted", ""},
}

// EventKinds returns every kind of event.
func EventKinds() []drivebay.EventKind {
	var kinds []drivebay.EventKind
	for _, e := range eventWords {
		kinds = append(kinds, e.kind)
	}
	return kinds
}

// Events writes the page about events.
func Events(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Events\n\nThis page is generated from the table of events in the program: change the table, not the page.\n\n" +
		"`drivebay events` lists the events, `drivebay events --watch` also prints new events, `--since`, `--kind`, `--drive` and `--volume` select some, and programs read them from GET /api/v1/events.\n" +
		"Each event names its drive or volume and has its cause as a sentence. drivebay keeps the last 10000 events.\n\n" +
		"In Kubernetes the daemon of a node writes them as Events with the kind as reason (docs/kubernetes.md): the third column names the objects, and ! marks warnings.\n\n" +
		"| kind | what happened | in Kubernetes | what to do |\n|---|---|---|---|\n")
	for _, e := range eventWords {
		row, _ := events.RowOf(e.kind)
		on := strings.Join(row.On.Words(), ", ")
		if row.Warning {
			on += " !"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.kind, e.means, on, e.todo)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
