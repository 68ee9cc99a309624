package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Engine is what the node needs of the volume engine.
type Engine interface {
	Volumes() *drivebay.VolumeSet
	WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error)
	// Listed returns an error while the set may lack volumes.
	Listed() error
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	DeleteVolume(ctx context.Context, id string) error
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
	Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error)
	MoveBeforeUse(ctx context.Context, id string, on bool) error
	ReleaseVolume(ctx context.Context, id string) error
	AdoptVolume(ctx context.Context, id string) error
	ForgetVolume(ctx context.Context, id string) error
	Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error)
	EnableReplication(ctx context.Context, r drivebay.ReplicationRequest) error
	DisableReplication(ctx context.Context, c drivebay.ReplicationCall) error
	PromoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	DemoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	ResyncVolume(ctx context.Context, c drivebay.ReplicationCall) (ready bool, err error)
	ReplicationInfo(ctx context.Context, id string) (drivebay.ReplicationInfo, error)
	// RestoreName gives a volume that was found without its name what others remember of it.
	RestoreName(id string, was drivebay.Volume) error
}

// Options are the settings of a Node.
type Options struct {
	Name      string // of the node
	Engine    Engine
	Objects   client.Volumes
	Snapshots client.Snapshots
	Log       *slog.Logger
	// ReplicationSecret reads the secret of replicated volumes; nil: the node has none.
	ReplicationSecret func() (string, error)
	// Mirrored gets whether all volumes and snapshots of the node have objects, once a second; it may be nil.
	Mirrored func(bool)
	// Old gets the ids of the volumes and snapshots whose objects the API server does not take, once a second; it may be nil.
	Old func([]string)
}

// reportTime is the time between two looks at whether all volumes have objects.
const reportTime = time.Second

// Node shows the volumes and snapshots of an engine as objects and does what the objects request.
type Node struct {
	opt       Options
	volumes   *part[*v1alpha1.Volume, *drivebay.VolumeView]
	snapshots *part[*v1alpha1.Snapshot, *drivebay.VolumeSnapshot]
	follow    []func(context.Context) // the objects
}

// New returns the part of a node.
func New(opt Options) *Node {
	n := &Node{opt: opt}
	n.volumes = newPart(&n.opt, n.kindOfVolumes())
	n.snapshots = newPart(&n.opt, n.kindOfSnapshots())
	volumes, snapshots := client.NewCache[v1alpha1.Volume](n.volumes.queue.Add), client.NewCache[v1alpha1.Snapshot](n.snapshots.queue.Add)
	n.volumes.objects, n.snapshots.objects = volumes, snapshots
	n.follow = []func(context.Context){
		func(ctx context.Context) {
			client.Follow(ctx, opt.Log, volumes, opt.Objects, client.Selector(opt.Name))
		},
		func(ctx context.Context) {
			client.Follow(ctx, opt.Log, snapshots, opt.Snapshots, client.Selector(opt.Name))
		},
	}
	return n
}

func (n *Node) kindOfVolumes() kind[*v1alpha1.Volume, *drivebay.VolumeView] {
	return kind[*v1alpha1.Volume, *drivebay.VolumeView]{
		api: n.opt.Objects, asked: translate.AskedOfVolume, requested: requested, run: n.runVolume, room: make(chan struct{}, tasksAtOnce), shown: wants, abandoned: abandoned, flaps: flaps,
		find: n.find, restore: n.restore,
		answer: func(o *v1alpha1.Volume, v *drivebay.VolumeView, out outcome, now time.Time) *v1alpha1.Volume {
			return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Status: answer(o, v, out, now)}
		},
		urgency: func(was, want *v1alpha1.Volume) urgency { return volumeStatuses.Urgency(&was.Status, &want.Status) },
		mirror: func(v *drivebay.VolumeView) *v1alpha1.Volume {
			return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v.ID, Labels: client.Labels(n.opt.Name)}, Spec: translate.SpecOfVolume(&v.Volume, n.opt.Name)}
		},
		label: func(m metav1.ObjectMeta) *v1alpha1.Volume { return &v1alpha1.Volume{ObjectMeta: m} },
	}
}

// find returns the volume of the engine, or one that it has found on drives that are not claimed; nil: it has none.
func (n *Node) find(id string) *drivebay.VolumeView {
	set := n.opt.Engine.Volumes()
	v, ok := set.Get(id)
	if i := slices.IndexFunc(set.Found, func(f drivebay.FoundVolume) bool { return f.ID == id }); !ok && i >= 0 {
		return viewOf(&set.Found[i])
	}
	return v
}

// restore gives a volume that was found without its name what its object remembers of it.
func (n *Node) restore(o *v1alpha1.Volume, v *drivebay.VolumeView) (*drivebay.VolumeView, error) {
	if v == nil {
		return v, nil
	}
	was, ok := remembered(o, v)
	if !ok {
		return v, nil
	}
	if err := n.opt.Engine.RestoreName(o.Name, was); err != nil {
		return v, fmt.Errorf("restore the name %q: %w", was.Name, err)
	}
	n.opt.Log.Info("a volume that was found on its drives has its name again", "op", "kube", "volume", o.Name, "name", was.Name)
	return n.find(o.Name), nil
}

func (n *Node) kindOfSnapshots() kind[*v1alpha1.Snapshot, *drivebay.VolumeSnapshot] {
	return kind[*v1alpha1.Snapshot, *drivebay.VolumeSnapshot]{
		api: n.opt.Snapshots, asked: translate.AskedOfSnapshot, requested: requestedSnapshot, run: n.runSnapshot,
		shown: func(*drivebay.VolumeSnapshot) bool { return true },
		restore: func(_ *v1alpha1.Snapshot, v *drivebay.VolumeSnapshot) (*drivebay.VolumeSnapshot, error) {
			return v, nil
		},
		abandoned: func(*v1alpha1.Snapshot, bool, bool) bool { return false }, // the engine does not say why one is gone
		flaps:     func(*v1alpha1.Snapshot, *drivebay.VolumeSnapshot) bool { return false },
		find: func(id string) *drivebay.VolumeSnapshot {
			v, _ := n.opt.Engine.Volumes().GetSnapshot(id)
			return v
		},
		answer: func(o *v1alpha1.Snapshot, v *drivebay.VolumeSnapshot, out outcome, now time.Time) *v1alpha1.Snapshot {
			return &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Status: answerSnapshot(o, v, out, now)}
		},
		urgency: func(was, want *v1alpha1.Snapshot) urgency {
			return snapshotStatuses.Urgency(&was.Status, &want.Status)
		},
		mirror: func(v *drivebay.VolumeSnapshot) *v1alpha1.Snapshot {
			return &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: v.ID, Labels: client.Labels(n.opt.Name)}, Spec: translate.SpecOfSnapshot(v, n.opt.Name)}
		},
		label: func(m metav1.ObjectMeta) *v1alpha1.Snapshot { return &v1alpha1.Snapshot{ObjectMeta: m} },
	}
}

// Run works until ctx ends. Calls of the engine that are under way are canceled.
func (n *Node) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, follow := range n.follow {
		all.Go(func() { follow(ctx) })
	}
	all.Go(func() { n.followEngine(ctx) })
	n.volumes.start(ctx, &all)
	n.snapshots.start(ctx, &all)
	for ctx.Err() == nil {
		if n.opt.Mirrored != nil {
			n.opt.Mirrored(n.mirrored())
		}
		if n.opt.Old != nil {
			n.opt.Old(append(n.volumes.old(), n.snapshots.old()...))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reportTime):
		}
	}
	n.volumes.queue.ShutDown()
	n.snapshots.queue.ShutDown()
	all.Wait()
	return nil
}

// followEngine queues what changed in the engine.
func (n *Node) followEngine(ctx context.Context) {
	volumes, snapshots := map[string]*drivebay.VolumeView{}, map[string]*drivebay.VolumeSnapshot{}
	for seq := uint64(0); ; {
		set, err := n.opt.Engine.WaitVolumes(ctx, seq)
		if err != nil {
			return
		}
		seq = set.Seq
		volumes = n.followVolumes(volumes, set)
		snapshots = n.followSnapshots(snapshots, set)
	}
}

func (n *Node) followVolumes(was map[string]*drivebay.VolumeView, set *drivebay.VolumeSet) (is map[string]*drivebay.VolumeView) {
	is = make(map[string]*drivebay.VolumeView, len(set.Volumes))
	for _, v := range set.Volumes {
		if is[v.ID] = v; was[v.ID] == v {
			continue
		}
		if was[v.ID] == nil {
			n.volumes.remember(v.ID, func(m *memory[*v1alpha1.Volume]) { m.deleted = false })
		}
		n.volumes.queue.AddAfter(v.ID, gatherTime)
	}
	for i := range set.Found {
		f := viewOf(&set.Found[i])
		if is[f.ID] != nil { // another volume of that id is in the records
			continue
		}
		if is[f.ID] = f; was[f.ID] == nil || !reflect.DeepEqual(was[f.ID].Location, f.Location) || !slices.Equal(was[f.ID].Condition, f.Condition) {
			n.volumes.queue.AddAfter(f.ID, gatherTime)
		}
	}
	for id, v := range was {
		if is[id] == nil {
			if v.CSIStatus == drivebay.CSIRemoving {
				n.volumes.remember(id, func(m *memory[*v1alpha1.Volume]) { m.deleted = true })
			}
			n.volumes.queue.Add(id)
		}
	}
	return is
}

func (n *Node) followSnapshots(was map[string]*drivebay.VolumeSnapshot, set *drivebay.VolumeSet) (is map[string]*drivebay.VolumeSnapshot) {
	is = make(map[string]*drivebay.VolumeSnapshot, len(set.Snapshots))
	for i := range set.Snapshots {
		v := &set.Snapshots[i]
		if is[v.ID] = v; !reflect.DeepEqual(was[v.ID], v) {
			n.snapshots.queue.AddAfter(v.ID, gatherTime)
		}
	}
	for id := range was {
		if is[id] == nil {
			n.snapshots.queue.Add(id)
		}
	}
	return is
}

// mirrored reports whether all volumes and snapshots have objects.
func (n *Node) mirrored() bool {
	set := n.opt.Engine.Volumes()
	if set.Seq == 0 || n.opt.Engine.Listed() != nil || !n.volumes.objects.Listed() || !n.snapshots.objects.Listed() {
		return false
	}
	for _, v := range set.Volumes {
		if wants(v) && !n.volumes.isShown(v.ID) {
			return false
		}
	}
	for i := range set.Found { // those on drives that are not claimed, also after the claims were lost
		if !n.volumes.isShown(set.Found[i].ID) {
			return false
		}
	}
	for i := range set.Snapshots {
		if !n.snapshots.isShown(set.Snapshots[i].ID) {
			return false
		}
	}
	return true
}

// runVolume calls the engine for what the object of a volume requests.
func (n *Node) runVolume(ctx context.Context, o *v1alpha1.Volume, do call) (out outcome) {
	out.did = do
	switch do {
	case callCreate:
		out.err = n.create(ctx, o)
	case callDelete:
		if out.err = n.notAway(o); out.err == nil {
			out.err = n.opt.Engine.DeleteVolume(ctx, o.Name)
		}
	case callHeal:
		out.healed, out.err = n.opt.Engine.Heal(ctx, drivebay.HealRequest{Volume: o.Name})
	case callMoveFirst:
		out.err = n.opt.Engine.MoveBeforeUse(ctx, o.Name, *o.Spec.MoveBeforeUse)
	case callAdopt:
		out.err = n.opt.Engine.AdoptVolume(ctx, o.Name)
	case callForget:
		out.err = n.opt.Engine.ForgetVolume(ctx, o.Name)
	case callReleaseFrom:
		if out.err = n.isOn(o.Name, o.Spec.ReleaseFrom); out.err == nil {
			out.err = n.opt.Engine.ReleaseVolume(ctx, o.Name)
		}
	case callForgetLost:
		if out.err = n.isOn(o.Name, o.Spec.Forget); out.err == nil {
			out.err = n.opt.Engine.ForgetVolume(ctx, o.Name)
		}
	case callTask:
		out = n.taskOnce(ctx, o)
	case callExpand:
		_, _, out.err = n.opt.Engine.ExpandVolume(ctx, o.Name, translate.SizeOf(o.Spec.Size))
	}
	return out
}

func (n *Node) create(ctx context.Context, o *v1alpha1.Volume) error {
	r, err := translate.RequestOf(&o.Spec)
	if err == nil && drivebay.VolumeID(r.Name) != o.Name {
		err = fmt.Errorf("volume %s: %w: the name of the object does not follow from spec.name", o.Name, drivebay.ErrInvalid)
	}
	if err == nil {
		_, err = n.opt.Engine.CreateVolume(ctx, r)
	}
	return err
}

// isOn returns an error if a volume is not on the drive that a person has named: it may have moved since.
func (n *Node) isOn(id, drive string) error {
	v, ok := n.opt.Engine.Volumes().Get(id)
	if !ok || !slices.Contains(v.Location.Drives, drive) {
		return fmt.Errorf("volume %s: %w: it is not on drive %s", id, drivebay.ErrInvalid, drive)
	}
	return nil
}

// runSnapshot calls the engine for what the object of a snapshot requests.
func (n *Node) runSnapshot(ctx context.Context, o *v1alpha1.Snapshot, do call) (out outcome) {
	out.did = do
	switch {
	case do == callDelete:
		if out.err = n.snapshotNotAway(o); out.err == nil {
			out.err = n.opt.Engine.DeleteSnapshot(ctx, o.Name)
			n.snapshots.remember(o.Name, func(m *memory[*v1alpha1.Snapshot]) { m.deleted = out.err == nil })
		}
	case drivebay.SnapshotID(o.Spec.Name) != o.Name:
		out.err = fmt.Errorf("snapshot %s: %w: the name of the object does not follow from spec.name", o.Name, drivebay.ErrInvalid)
	default:
		_, out.err = n.opt.Engine.CreateSnapshot(ctx, o.Spec.Name, o.Spec.Volume)
	}
	return out
}
