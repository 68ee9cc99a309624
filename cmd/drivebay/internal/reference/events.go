package reference

import (
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
)

// eventWords holds, for each kind of event, what happened and what to do about it.
var eventWords = []struct {
	kind  drivebay.EventKind
	means string
	todo  string
}{
	{drivebay.EventAppeared, "a drive was seen that was not known", ""},
	{drivebay.EventVanished, "a complete listing of the machine lacks the drive", "unless it was pulled on purpose: look at the bay, the cable and the power; volumes on it are MISSING"},
	{drivebay.EventReturned, "a drive that was gone is back, as itself", ""},
	{drivebay.EventRenamed, "the kernel calls the drive otherwise now", ""},
	{drivebay.EventMoved, "the drive is in another bay", ""},
	{drivebay.EventHealth, "the verdict on the drive changed", "`drivebay explain DRIVE`"},
	{drivebay.EventFinding, "the drive has a new finding", "docs/health-rules.md"},
	{drivebay.EventCleared, "a finding of the drive has ended", ""},
	{drivebay.EventIdentity, "two drives say that they are the same, or say so no more", "`drivebay drives`: nothing is written to either"},
	{drivebay.EventResized, "a drive has another size than before", "nothing if it is larger; docs/health-rules.md, DriveShrank, if it is smaller"},
	{drivebay.EventSelfTest, "a self-test began or ended", ""},
	{drivebay.EventLocate, "an operator switched the light of a bay", ""},
	{drivebay.EventAcknowledge, "an operator acknowledged a finding of the drive", ""},
	{drivebay.EventCordon, "an operator keeps new data off the drive, or lets it on again", ""},
	{drivebay.EventClaim, "volumes may be made on the drive, or no more", ""},
	{drivebay.EventUsage, "the drive went on with its working life", "docs/drive-usage.md says what it waits for"},
	{drivebay.EventNotReleased, "the drive's health turned and the policy leaves it alone, because others behind the same part turned at once", "look at the part: cable, backplane, controller; `drivebay release DRIVE` if it is the drive after all"},
	{drivebay.EventFaultLight, "the fault light of a bay was switched: on while a hand is needed there", ""},
	{drivebay.EventReplaced, "a new drive took the place of the one that was taken out of its bay, and its claim", ""},
	{drivebay.EventNotReplaced, "a drive is in the bay of another one, and does not take its place; the cause says why", "`drivebay claim DRIVE` says that it is meant; or put the right one in"},
	{drivebay.EventWrongPulled, "a drive left while another one was to be pulled", "put it back into its bay: it returns as itself; then pull the right one"},
	{drivebay.EventSwapped, "two drives have changed bays", "nothing, if it was meant: they are known by what they are, not by where"},
	{drivebay.EventQuarantined, "a drive that was taken out is back", "pull it, or use it again with `drivebay accept DRIVE`; until then nothing is written to it"},
	{drivebay.EventForgotten, "the record of a drive that is OFFLINE was removed, by an operator, or after `poll.forgetAfter` because nothing needs it", "nothing; if it comes back it is a new drive"},
	{drivebay.EventStoreFailed, "the record store cannot be written: its disk is full, read-only, hangs or fails, or the file was removed or replaced", "`drivebay status` says why; repair the disk of the state directory. Volumes can be staged and published meanwhile, not created, grown or deleted"},
	{drivebay.EventStoreRecovered, "the record store can be written again, and has what was kept in memory meanwhile", ""},
	{drivebay.EventStoreOlder, "the record store is older than the drives: a backup was restored, or the machine was rolled back", "`drivebay status` lists the volumes that were taken in from the drives. Volumes that were deleted since are shown as MISSING: `drivebay volume forget`"},
	{drivebay.EventVolumeCreated, "a volume was made", ""},
	{drivebay.EventVolumeFound, "a volume of ours was found that was in no record", ""},
	{drivebay.EventVolumeDeleted, "a volume was deleted, or forgotten", ""},
	{drivebay.EventVolumeExpanded, "a volume was grown", ""},
	{drivebay.EventVolumeFailed, "what was being done to a volume failed", "`drivebay explain VOLUME`"},
	{drivebay.EventVolumeReleased, "a volume was let go of: its drive leaves without it", ""},
	{drivebay.EventVolumeMoved, "a volume was moved: its drive has to leave, or the volume or the one before it on the drive needs room to grow", ""},
	{drivebay.EventVolumeDataLoss, "a drive cannot read all of a volume that is moved off it, or an operator goes on without what it cannot read", "`drivebay volume show VOLUME` names what; read again with `drivebay volume retry`, or go on with `drivebay volume accept-loss`"},
	{drivebay.EventVolumeLeft, "data of a volume stays on a drive and belongs to no volume: an unfinished copy, or data that could not be wiped", "wipe the drive before you dispose of it"},
	{drivebay.EventVolumeHealed, "a volume was repaired", "docs/repairs.md"},
	{drivebay.EventVolumeNotHealed, "a volume could not be repaired, by the daemon itself", "`drivebay explain VOLUME`; `drivebay heal VOLUME --dry-run` says what would be done"},
	{drivebay.EventVolumeAbnormal, "the condition of a volume has a new reason; `from` and `to` name the reasons before and now", "`drivebay explain VOLUME`; docs/volume-conditions.md has every reason"},
	{drivebay.EventVolumeRecovered, "the condition of a volume has had no reason for half a minute", ""},
	{drivebay.EventVolumeStaged, "a volume was staged: its filesystem was mounted at a staging path, or its device made ready", ""},
	{drivebay.EventVolumeUnstaged, "a volume was unstaged from a staging path", ""},
	{drivebay.EventSnapshotCreated, "a snapshot was made", ""},
	{drivebay.EventSnapshotDeleted, "a snapshot was deleted, or forgotten", ""},
}

// Events writes the page about events.
func Events(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Events\n\nThis page is written by the program from its own table; change the table, not the page.\n\n" +
		"`drivebay events` lists them, `drivebay events --follow` goes on with what happens from now on, and GET /api/v1/events gives them to programs.\n" +
		"Each has the drive or volume that it is about, and its cause in a sentence. The last 10000 are kept.\n\n" +
		"| kind | what has happened | what to do |\n|---|---|---|\n")
	for _, e := range eventWords {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.kind, e.means, e.todo)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
