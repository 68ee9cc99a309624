package events

import "github.com/drivebay/drivebay"

// About says which objects an event of the machine is shown on.
type About uint8

const (
	Drive   About = 1 << iota // the Drive
	Node                      // the Node
	Volume                    // the Volume
	Claim                     // the PersistentVolumeClaim that has the volume
	Pods                      // the pods for which it is published
	nothing About = 0
)

// users are all objects at which people look who use a volume.
const users = Volume | Claim | Pods

// Row says how Kubernetes shows a kind of event. The reason of an Event is the kind.
type Row struct {
	On      About
	Warning bool
}

// rows has each kind of event. Those on no object would tell nothing that the object itself or the kubelet does not.
var rows = map[drivebay.EventKind]Row{
	drivebay.EventAppeared:    {Drive | Node, false},
	drivebay.EventVanished:    {Drive | Node, true},
	drivebay.EventReturned:    {Drive | Node, false},
	drivebay.EventRenamed:     {nothing, false},
	drivebay.EventMoved:       {Drive, false},
	drivebay.EventHealth:      {Drive | Node, false}, // a warning by the health: see rowOf
	drivebay.EventFinding:     {Drive, true},
	drivebay.EventCleared:     {Drive, false},
	drivebay.EventIdentity:    {Drive, true},
	drivebay.EventResized:     {Drive, true},
	drivebay.EventSelfTest:    {Drive, false},
	drivebay.EventLocate:      {Drive, false},
	drivebay.EventAcknowledge: {Drive, false},
	drivebay.EventCordon:      {Drive, false},
	drivebay.EventClaim:       {Drive, false},
	drivebay.EventUsage:       {Drive, false}, // a warning by the usage: see rowOf
	drivebay.EventReplaced:    {Drive | Node, false},
	drivebay.EventNotReplaced: {Drive | Node, true},
	drivebay.EventWrongPulled: {Drive | Node, true},
	drivebay.EventSwapped:     {Drive | Node, true},
	drivebay.EventQuarantined: {Drive | Node, true},
	drivebay.EventNotReleased: {Drive | Node, true},
	drivebay.EventFaultLight:  {Drive, false},
	drivebay.EventForgotten:   {Node, false},

	drivebay.EventStoreFailed:    {Node, true},
	drivebay.EventStoreRecovered: {Node, false},
	drivebay.EventStoreOlder:     {Node, true},

	drivebay.EventVolumeCreated:   {Volume, false},
	drivebay.EventVolumeFound:     {Volume, false},
	drivebay.EventVolumeDeleted:   {nothing, false},
	drivebay.EventVolumeExpanded:  {Volume, false},
	drivebay.EventVolumeFailed:    {Volume | Claim, true},
	drivebay.EventVolumeReleased:  {Volume | Claim, false},
	drivebay.EventVolumeMoved:     {Volume | Claim, false},
	drivebay.EventVolumeDataLoss:  {users, true},
	drivebay.EventVolumeLeft:      {Drive | Node, true},
	drivebay.EventVolumeHealed:    {users, false},
	drivebay.EventVolumeNotHealed: {users, true},
	drivebay.EventVolumeAbnormal:  {users, true},
	drivebay.EventVolumeRecovered: {users, false},
	drivebay.EventVolumeStaged:    {nothing, false},
	drivebay.EventVolumeUnstaged:  {nothing, false},
	drivebay.EventSnapshotCreated: {Volume, false},
	drivebay.EventSnapshotDeleted: {Volume, false},
}

// RowOf returns how Kubernetes shows a kind of event, for the documentation.
func RowOf(kind drivebay.EventKind) (r Row, known bool) {
	r, known = rows[kind]
	return r, known
}

// rowOf returns how Kubernetes shows an event.
func rowOf(e drivebay.Event) Row {
	r := rows[e.Kind]
	switch e.Kind {
	case drivebay.EventHealth:
		r.Warning = e.To == drivebay.HealthBad.String() || e.To == drivebay.HealthSuspect.String()
	case drivebay.EventClaim:
		if e.To == string(drivebay.ClaimedByConfig) { // all drives of a node at its first start
			return Row{}
		}
	case drivebay.EventUsage:
		r.Warning = e.To == drivebay.UsageFailed.String()
	}
	if e.Drive == "" {
		r.On &^= Drive
	}
	if e.Volume == "" {
		r.On &^= users
	}
	return r
}

// names are the words for objects, in this order.
var names = []struct {
	about About
	name  string
}{{Drive, "Drive"}, {Node, "Node"}, {Volume, "Volume"}, {Claim, "claim"}, {Pods, "pods"}}

// Words returns the names of the objects.
func (a About) Words() (out []string) {
	for _, n := range names {
		if a&n.about != 0 {
			out = append(out, n.name)
		}
	}
	return out
}
