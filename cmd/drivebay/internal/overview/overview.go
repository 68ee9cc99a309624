package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// Input is what an overview is made from.
type Input struct {
	Drives  *drivebay.Snapshot  // nil: not known
	Volumes *drivebay.VolumeSet // nil: not known, or the daemon makes no volumes

	// Of the daemon: why it is not ready, the drives that it has not read yet, and the volumes whose
	// newest record is only in memory.
	NotReady, Unread, Unwritten []string

	Replication string // why the replicated volumes cannot be used; "": they can

	Config *api.ConfigStatus // the configuration in force; nil: not known
}

// Overview is the state of a machine in a few lines.
type Overview struct {
	Machine string  `json:"machine,omitempty"`
	Verdict Verdict `json:"verdict"`
	Exit    int     `json:"exitStatus"`
	Wrong   []Item  `json:"wrong"`    // worst first
	Doing   []Item  `json:"doing"`    // what drivebay is doing
	Waits   []Item  `json:"waitsFor"` // what waits for a person
	Next    string  `json:"next"`     // what to do next, with its command in backquotes

	Drives  []drivebay.Drive       `json:"-"`
	Volumes []*drivebay.VolumeView `json:"-"`
}

// Item is one thing that is wrong, is done, or waits.
type Item struct {
	Kind    string  `json:"kind"`           // drive, volume, snapshot, daemon or machine; of a cluster also node
	Node    string  `json:"node,omitempty"` // of a cluster
	ID      string  `json:"id,omitempty"`
	Name    string  `json:"name,omitempty"` // of a drive, its kernel name
	Bay     string  `json:"bay,omitempty"`
	Verdict Verdict `json:"verdict"`
	State   string  `json:"state"` // "BAD", "OFFLINE", "RELEASING"
	Text    string  `json:"text,omitempty"`
	Next    string  `json:"next,omitempty"`
	// Volumes are the names of the volumes on a drive. Unusable are those of them that cannot be used.
	Volumes  []string           `json:"volumes,omitempty"`
	Unusable []string           `json:"unusable,omitempty"`
	Progress *drivebay.Progress `json:"progress,omitempty"`
	Percent  *int               `json:"percent,omitempty"` // that is done, of a self-test
}

// Title names the object of an item: "drive sdd, bay Slot 12".
func (i Item) Title() string {
	switch {
	case i.Kind == "drive" && i.Bay != "":
		return fmt.Sprintf("drive %s, bay %s", cmp.Or(i.Name, i.ID), i.Bay)
	case i.Kind == "drive" || i.Kind == "volume" || i.Kind == "snapshot":
		return i.Kind + " " + cmp.Or(i.Name, i.ID)
	}
	return i.Kind
}

// calm is the next command of a machine on which nothing is wrong.
const calm = "`drivebay tree` shows the drives and what depends on them"

// Of makes the overview.
func Of(in Input) Overview {
	b := builder{Input: in, on: map[string][]*drivebay.VolumeView{}, explained: map[string]bool{}}
	out := &b.out
	out.Wrong, out.Doing, out.Waits = []Item{}, []Item{}, []Item{}
	b.daemon()
	if in.Volumes != nil {
		out.Volumes = in.Volumes.Volumes
		for _, v := range in.Volumes.Volumes {
			for _, id := range v.Location.Drives {
				b.on[id] = append(b.on[id], v)
			}
		}
		for _, list := range b.on {
			slices.SortStableFunc(list, func(a, b *drivebay.VolumeView) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	if in.Drives != nil {
		out.Machine, out.Drives = in.Drives.Machine.Name, in.Drives.Drives
		for i := range in.Drives.Drives {
			b.drive(&in.Drives.Drives[i])
		}
	}
	for _, v := range out.Volumes {
		b.volume(v)
	}
	b.snapshots()
	b.found()
	b.config()
	out.conclude(worstFirst)
	return *out
}

func worstFirst(a, b Item) int { return cmp.Compare(b.Verdict, a.Verdict) }

// conclude puts what is worst first, and says how the whole is and what to do next.
func (o *Overview) conclude(worstFirst func(a, b Item) int) {
	slices.SortStableFunc(o.Wrong, worstFirst)
	slices.SortStableFunc(o.Waits, worstFirst)
	for _, i := range o.Wrong {
		o.Verdict = max(o.Verdict, i.Verdict)
	}
	o.Exit, o.Next = o.Verdict.Exit(), o.next()
}

// Join makes the overview of a cluster out of those of its nodes, whose name is that of the machine.
func Join(cluster string, nodes []Overview) Overview {
	out := Overview{Machine: cluster, Wrong: []Item{}, Doing: []Item{}, Waits: []Item{}}
	for _, n := range nodes {
		add := func(to *[]Item, from []Item) {
			for _, i := range from {
				i.Node = n.Machine
				*to = append(*to, i)
			}
		}
		add(&out.Wrong, n.Wrong)
		add(&out.Doing, n.Doing)
		add(&out.Waits, n.Waits)
		out.Verdict = max(out.Verdict, n.Verdict)
	}
	rank := func(i Item) int { // of the drives whose failure loses no data, those that are BAD before the others
		if i.State == drivebay.HealthBad.String() {
			return 0
		}
		return 1
	}
	out.conclude(func(a, b Item) int { return cmp.Or(worstFirst(a, b), cmp.Compare(rank(a), rank(b))) })
	return out
}

type builder struct {
	Input
	out       Overview
	on        map[string][]*drivebay.VolumeView // by id of the drive
	explained map[string]bool                   // ids of volumes whose trouble is that of a drive in the list
	releasing map[string]bool                   // ids of volumes on drives that are being released
}

// next returns what a person does first.
func (o *Overview) next() string {
	for _, list := range [][]Item{o.Waits, o.Wrong, o.Doing} {
		for _, i := range list {
			if i.Next != "" {
				return i.Next
			}
		}
	}
	return calm
}

func (b *builder) wrong(i Item) { b.out.Wrong = append(b.out.Wrong, i) }

// wait adds an item that waits for a person.
func (b *builder) wait(i Item, text, next string) {
	i.Text, i.Next, i.Volumes, i.Unusable, i.Progress = text, next, nil, nil, nil
	b.out.Waits = append(b.out.Waits, i)
}

// daemon adds what is wrong with the daemon and with the listing of the machine.
func (b *builder) daemon() {
	for _, r := range b.NotReady {
		b.wrong(Item{Kind: "daemon", Verdict: CannotTell, State: "NOT READY", Text: r, Next: "`drivebay status` again in a minute; `journalctl -u drivebay` if it stays so"})
	}
	if len(b.Unread) > 0 {
		b.wrong(Item{Kind: "daemon", Verdict: CannotTell, State: "NOT READ", Text: "calls that depend on volumes on drives that were not read fail with UNAVAILABLE: " + some(b.Unread, "; "),
			Next: "pull the drive if it does not recover, or run `drivebay cordon DRIVE` if it is not claimed and has no volume"})
	}
	if len(b.Unwritten) > 0 {
		b.wrong(Item{Kind: "daemon", Verdict: Degraded, State: "NOT STORED", Text: "in memory only: the newest record of volume " + some(b.Unwritten, ", ")})
	}
	if b.Replication != "" {
		b.wrong(Item{Kind: "machine", Verdict: AtRisk, State: "NO REPLICATION", Text: "replicated volumes cannot be used: " + b.Replication, Next: "`drivebay replication status` shows them"})
	}
	switch s := b.Drives; {
	case s == nil && len(b.NotReady) == 0:
		b.wrong(Item{Kind: "machine", Verdict: CannotTell, State: "UNKNOWN", Text: "the drives were not listed"})
	case s == nil:
	case !s.Complete:
		b.wrong(Item{Kind: "machine", Verdict: CannotTell, State: "INCOMPLETE", Text: "the list of drives is incomplete", Next: "`drivebay drives` shows what could not be read"})
	case len(s.Problems) > 0 && s.StoreFailing == "": // what is not read has not been found sound
		b.wrong(Item{Kind: "machine", Verdict: CannotTell, State: "NOT READ", Text: some(s.Problems, "; "), Next: "`drivebay drives` shows what could not be read"})
	}
	if b.Volumes != nil && len(b.Volumes.Problems) > 0 {
		b.wrong(Item{Kind: "machine", Verdict: CannotTell, State: "NOT READ", Text: some(b.Volumes.Problems, "; "), Next: "`drivebay volumes` shows what depends on it"})
	}
	if b.Drives != nil && b.Drives.StoreFailing != "" {
		b.wrong(Item{Kind: "daemon", Verdict: Degraded, State: "NOT STORED", Text: "the record store cannot be written: " + b.Drives.StoreFailing, Next: "repair the disk of the state directory"})
	}
}

// config adds what the last reload of the configuration left to do. Both are no fault: the daemon works
// with the configuration that it has.
func (b *builder) config() {
	c := b.Config
	if c == nil {
		return
	}
	if c.Error != "" {
		b.wait(Item{Kind: "daemon", State: "NOT RELOADED"}, c.Error, "correct the file, then `systemctl reload drivebay`")
	}
	if len(c.Restart) > 0 {
		b.wait(Item{Kind: "daemon", State: "RESTART"}, "changed in the configuration, and in effect only after a restart: "+strings.Join(c.Restart, ", "),
			"`systemctl restart drivebay`; volumes stay mounted")
	}
}

// some joins the first parts of a list.
func some(list []string, by string) string {
	const most = 3
	if more := len(list) - most; more > 0 {
		return strings.Join(list[:most], by) + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, by)
}

func driveItem(d *drivebay.Drive) Item {
	return Item{Kind: "drive", ID: d.ID, Name: d.Name, Bay: d.Slot.Bay, State: d.Health.String()}
}

// replaced reports whether another drive has taken the place of a drive that was removed.
func (b *builder) replaced(d *drivebay.Drive) bool {
	return d.Usage == drivebay.UsageRemoved && b.Drives.Replaced(d)
}

// drive adds what is wrong with a drive, what is done about it, and what it waits for.
func (b *builder) drive(d *drivebay.Drive) {
	if b.replaced(d) && d.Status == drivebay.StatusOffline {
		return
	}
	item, step := driveItem(d), OfDrive(d)
	item.Verdict = ofDrive(d, b.Volumes != nil)
	if d.Usage == drivebay.UsageRemoved && d.Status == drivebay.StatusOffline && len(b.on[d.ID]) == 0 {
		item.Verdict = Fine // removed as requested: its bay waits for the successor
	}
	if item.Verdict > Fine {
		b.addVolumes(&item)
		item.State, item.Text = stateOf(d), troubleOf(d)
		item.Next = b.nextOf(d, step)
		b.wrong(item)
	}
	switch d.Usage {
	case drivebay.UsageReleasing, drivebay.UsageRemoving:
		b.leaves(d, step)
	case drivebay.UsageReleased, drivebay.UsageFailed, drivebay.UsageRemoved:
		item.State = d.Usage.String()
		b.wait(item, step.Does+": waits for "+step.Waits, step.Next)
	default:
		if item.Verdict > Fine {
			b.wait(item, "", item.Next)
		}
	}
	b.selfTest(d)
	b.successor(d)
}

// selfTest adds a self-test that is in progress.
func (b *builder) selfTest(d *drivebay.Drive) {
	run := d.SelfTest
	if run == nil || d.Status != drivebay.StatusOnline {
		return
	}
	item := driveItem(d)
	item.State, item.Percent = "SELF-TEST", run.Done
	item.Text = strings.TrimSpace(run.Kind + " self-test in progress")
	if run.Done != nil {
		item.Text += fmt.Sprintf(": %d %% done", *run.Done)
	}
	item.Next = fmt.Sprintf("`drivebay smart %s` shows the result of the self-test when it has ended", d.ID)
	b.out.Doing = append(b.out.Doing, item)
}

// nextOf returns what to do about a drive on which something is wrong.
func (b *builder) nextOf(d *drivebay.Drive, step Step) string {
	gone := d.Status == drivebay.StatusOffline && d.Usage == drivebay.UsageInUse && d.Claim == nil
	switch {
	case gone && len(b.on[d.ID]) > 0:
		return fmt.Sprintf("put it back into its bay; `drivebay explain %s` shows what is known of it", d.ID)
	case gone:
		return fmt.Sprintf("put it back into its bay; if it is gone permanently, `drivebay forget %s`", d.ID)
	}
	return cmp.Or(step.Next, fmt.Sprintf("`drivebay explain %s` shows the reasons and what to do", d.ID))
}

// leaves adds a drive that is being released or removed. What waits for a person has no progress.
func (b *builder) leaves(d *drivebay.Drive, step Step) {
	item := driveItem(d)
	item.State, item.Text, item.Next = d.Usage.String(), step.Does, step.Next
	if d.Leaving != nil {
		item.Progress = d.Leaving.Progress
		if d.Leaving.Cause != "" {
			item.Text = d.Leaving.Cause
		}
	}
	if b.releasing == nil {
		b.releasing = map[string]bool{}
	}
	for _, v := range b.on[d.ID] {
		b.releasing[v.ID] = true
		if len(v.Publications) > 0 && !v.Location.OnLVM() { // it moves while it is not in use
			b.wait(Item{Kind: "volume", ID: v.ID, Name: v.Name, Verdict: ofVolume(v), State: "IN USE"}, "", fmt.Sprintf("stop the pod that uses volume %s: it then moves off drive %s", cmp.Or(v.Name, v.ID), cmp.Or(d.Name, d.ID)))
		}
	}
	b.out.Doing = append(b.out.Doing, item)
}

// successor adds a drive that is to take the place of another.
func (b *builder) successor(d *drivebay.Drive) {
	if d.Succeeds == nil || !d.Succeeds.Taken.IsZero() || d.Status != drivebay.StatusOnline {
		return
	}
	item := driveItem(d)
	item.Next = fmt.Sprintf("`drivebay replace %s` continues the replacement", d.Succeeds.Of)
	if d.Succeeds.Against == "" {
		item.Text = "is being checked as the successor of drive " + d.Succeeds.Of
		b.out.Doing = append(b.out.Doing, item)
		return
	}
	b.wait(item, "is not accepted as the successor of drive "+d.Succeeds.Of+": "+d.Succeeds.Against, item.Next)
}

// ofDrives are the reasons of a volume's condition that repeat what is wrong with its drive.
var ofDrives = []string{"DiskFailure", "DiskDegrading", "DiskRemoved", "DriveCopied", "DriveShrank", "HealthUnknown", "PartialActivation", "PhysicalVolumeMissing"}

// addVolumes adds the volumes on a drive that is in the list. A volume whose trouble is that of the drive
// alone is not in the list itself.
func (b *builder) addVolumes(item *Item) {
	for _, v := range b.on[item.ID] {
		item.Volumes = append(item.Volumes, v.Name)
		if slices.ContainsFunc(v.Condition, func(f drivebay.VolumeFinding) bool { return !slices.Contains(ofDrives, f.Reason) }) {
			continue
		}
		b.explained[v.ID] = true
		item.Verdict = max(item.Verdict, ofVolume(v))
		if v.Condition.Severity() >= drivebay.SeverityInaccessible {
			item.Unusable = append(item.Unusable, v.Name)
		}
	}
}

func stateOf(d *drivebay.Drive) string {
	if d.Status != drivebay.StatusOnline {
		return d.Status.String()
	}
	return d.Health.String()
}

// troubleOf says what is wrong with a drive.
func troubleOf(d *drivebay.Drive) string {
	text := ""
	switch {
	case d.Status == drivebay.StatusOffline:
		text = "the drive is gone from the machine"
	case len(d.Findings) > 0:
		text = d.Findings[0].Text
		if more := len(d.Findings) - 1; more > 0 {
			text += fmt.Sprintf(" (+%d more)", more)
		}
	case d.NotWritten() != "":
		text = d.NotWritten()
	case d.Unusable() != "":
		text = d.Unusable()
	case d.Denied:
		text = "the daemon may not open the drive"
	default:
		text = "the drive has not answered yet"
	}
	if d.Usage == drivebay.UsageFailed && d.Leaving != nil {
		text += "; its removal failed: " + d.Leaving.Cause
	}
	return text
}

// works are the words for the work on a volume.
var works = map[string]string{"create": "is being created", "expand": "is being expanded", "remove": "is being wiped and removed", "move": "is being moved", "scrub": "its filesystem is being checked"}

// volume adds what is wrong with a volume, and what is done with it.
func (b *builder) volume(v *drivebay.VolumeView) {
	item := Item{Kind: "volume", ID: v.ID, Name: v.Name, Verdict: ofVolume(v), State: v.OperationalStatus.String()}
	if v.Work != "" && !b.releasing[v.ID] {
		doing := item
		doing.Text, doing.Progress = cmp.Or(works[v.Work], v.Work), v.Progress
		b.out.Doing = append(b.out.Doing, doing)
	}
	if item.Verdict == Fine || b.explained[v.ID] {
		return
	}
	item.Next = fmt.Sprintf("`drivebay explain %s` shows the reason and what to do", v.ID)
	switch {
	case v.Condition.Abnormal():
		item.State, item.Text = v.Condition.Severity().String(), v.Condition.Message()
	case v.OperationalStatus == drivebay.OperationalUnknown || v.Health == drivebay.HealthUnknown:
		item.State, item.Text = "UNKNOWN", "it is not known whether the volume can be used"
	default:
		item.Text = "health " + v.Health.String()
	}
	b.wrong(item)
	b.wait(item, "", item.Next)
}

// snapshots adds the snapshots that cannot be used, unless their drive or their volume is in the list: it explains them.
func (b *builder) snapshots() {
	if b.Volumes == nil {
		return
	}
	listed := map[string]bool{}
	for _, i := range b.out.Wrong {
		listed[i.ID] = i.Kind == "drive" || i.Kind == "volume"
	}
	for _, s := range b.Volumes.Snapshots {
		if s.Unavailable == "" || listed[s.Source] || b.explained[s.Source] || slices.ContainsFunc(s.Location.Drives, func(id string) bool { return listed[id] }) {
			continue
		}
		item := Item{Kind: "snapshot", ID: s.ID, Name: s.Name, Verdict: Degraded, State: "UNAVAILABLE", Text: "no volume can be made from it: " + s.Unavailable,
			Next: "`drivebay volume snapshots` shows it; `drivebay volume snapshot-delete " + s.ID + "` deletes it"}
		b.wrong(item)
		b.wait(item, "", item.Next)
	}
}

// found adds the volumes on drives that are not claimed, and those that cannot be adopted.
func (b *builder) found() {
	if b.Volumes == nil {
		return
	}
	for _, f := range b.Volumes.Found {
		if f.Issue != "" {
			b.wrong(Item{Kind: "volume", ID: f.ID, Name: f.Name, Verdict: CannotTell, State: "FOUND", Text: "found in no record, and not used: " + f.Issue, Next: f.Next})
			continue
		}
		b.wait(Item{Kind: "volume", ID: f.ID, Name: f.Name, State: "FOUND"}, "found on drives that are not claimed, and not used", fmt.Sprintf("`drivebay volume adopt %s` uses it", f.ID))
	}
}
