package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/kubectl"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// ClusterInput is what the page of a cluster is made from.
type ClusterInput struct {
	Drives   *drivebay.Snapshot // of all nodes; Seq 0: not listed yet
	Volumes  *drivebay.VolumeSet
	Machines map[string]*drivebay.Hardware // by the name of the node
	Down     map[string]string             // why nodes are down, by their names
	Heard    time.Time                     // when the API server has last listed the objects
	Away     string                        // why it does not now; "": it does
	Refused  bool                          // it answers, and does not show the objects to this program
	Started  time.Time                     // of the program that serves the page
	Version  string
	Now      time.Time
}

// Cluster is what the page of a cluster shows, without its nodes.
type Cluster struct {
	Kind     string            `json:"kind"` // "cluster"
	Started  time.Time         `json:"started"`
	Version  string            `json:"version"`
	Now      time.Time         `json:"now"`
	Ready    bool              `json:"ready"`
	Away     *Away             `json:"away,omitempty"` // the API server does not list the objects
	Overview overview.Overview `json:"overview"`
	// All are how many items each list of the overview has, of which only the first are sent.
	All      [3]int   `json:"all"`
	Problems []string `json:"problems,omitempty"`
	Nodes    []string `json:"nodes"` // worst first
}

// Away says since when the API server does not list the objects, and why.
type Away struct {
	Heard   time.Time `json:"heard,omitzero"` // zero: it never did
	Why     string    `json:"why"`
	Refused bool      `json:"refused,omitempty"` // it answers, and does not show them to the program that serves the page
}

// Node is a node as the page of a cluster shows it.
type Node struct {
	Name       string           `json:"name"`
	Verdict    overview.Verdict `json:"verdict"`
	Down       string           `json:"down,omitempty"` // why what is shown is old
	Server     string           `json:"server,omitempty"`
	Enclosures []Enclosure      `json:"enclosures"`
}

// Enclosure is the drives of an enclosure, by their bays.
type Enclosure struct {
	Title  string `json:"title"`
	Drives []Row  `json:"drives"`
}

// Row is what the page of a cluster shows of each drive, and finds it by.
type Row struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Bay     string   `json:"bay,omitempty"`
	Serial  string   `json:"serial,omitempty"`
	Model   string   `json:"model,omitempty"`
	Kind    string   `json:"kind"`
	Size    string   `json:"size"`
	Health  string   `json:"health"`
	Gone    bool     `json:"gone,omitempty"`
	Lit     bool     `json:"lit,omitempty"`
	Fault   bool     `json:"fault,omitempty"`
	Mark    string   `json:"mark,omitempty"`  // what is special about it, in a word
	Codes   []string `json:"codes,omitempty"` // of its findings
	Why     string   `json:"why,omitempty"`
	Volumes []string `json:"volumes,omitempty"` // names
	Percent *int     `json:"percent,omitempty"`
}

// Detail is what the page of a cluster shows of one drive.
type Detail struct {
	Node     string    `json:"node"`
	Server   string    `json:"server,omitempty"`
	Down     string    `json:"down,omitempty"`
	Drive    Drive     `json:"drive"`
	Volumes  []Volume  `json:"volumes"`
	After    *Drive    `json:"after,omitempty"` // the drive that takes its place
	Commands []Command `json:"commands,omitempty"`
}

// Command is what an operator may run about a drive now.
type Command struct {
	Label   string `json:"label"`
	Effect  string `json:"effect"`
	Command string `json:"command"`
	Primary bool   `json:"primary,omitempty"` // it is a step of the replacement
}

// view is the drives and volumes of one node.
type view struct {
	drives  *drivebay.Snapshot
	volumes *drivebay.VolumeSet
	on      map[string][]*drivebay.VolumeView // by the id of the drive
}

// views returns the nodes of a cluster, each as if it were alone.
func (in *ClusterInput) views() map[string]*view {
	out := map[string]*view{}
	of := func(node string) *view {
		if out[node] == nil {
			out[node] = &view{&drivebay.Snapshot{Seq: in.Drives.Seq, At: in.Drives.At, Complete: true, Machine: drivebay.Machine{Name: node, Kind: "real", Hardware: in.Machines[node]}},
				&drivebay.VolumeSet{}, map[string][]*drivebay.VolumeView{}}
		}
		return out[node]
	}
	for _, d := range in.Drives.Drives {
		v := of(d.Node)
		d.Slot.Enclosure = strings.TrimPrefix(strings.TrimPrefix(d.Slot.Enclosure, d.Node), "/")
		v.drives.Drives = append(v.drives.Drives, d)
		if d.Slot.Bay != "" {
			v.drives.Bays = append(v.drives.Bays, drivebay.Bay{Slot: d.Slot, Drive: d.ID})
		}
	}
	if in.Volumes != nil {
		for _, vol := range in.Volumes.Volumes {
			v := of(vol.Node)
			v.volumes.Volumes = append(v.volumes.Volumes, vol)
			for _, id := range vol.Location.Drives {
				v.on[id] = append(v.on[id], vol)
			}
		}
	}
	return out
}

// down returns why a node is down, beside its name.
func (in *ClusterInput) down(node string) string {
	return strings.TrimPrefix(in.Down[node], "node "+node+": ")
}

// mostItems is how many items of a list the page shows.
const mostItems = 8

// OfCluster makes the page of a cluster, and its nodes in the order of Cluster.Nodes.
func OfCluster(in ClusterInput) (Cluster, []Node) {
	out := Cluster{Kind: "cluster", Started: in.Started, Version: in.Version, Now: in.Now, Nodes: []string{}}
	if in.Away != "" {
		out.Away = &Away{in.Heard, in.Away, in.Refused}
	}
	if in.Drives == nil || in.Drives.Seq == 0 {
		out.Overview = overview.Of(overview.Input{NotReady: []string{"the drives are being listed"}})
		return out, nil
	}
	out.Ready = true
	var all []overview.Overview
	var nodes []Node
	for name, v := range in.views() {
		down := in.down(name)
		o := overviewOf(name, v, down)
		all = append(all, o)
		nodes = append(nodes, Node{Name: name, Verdict: o.Verdict, Down: down, Server: v.drives.Machine.Hardware.Server(), Enclosures: v.enclosures()})
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), natural(a.Name, b.Name)) })
	slices.SortFunc(all, func(a, b overview.Overview) int { return natural(a.Machine, b.Machine) })
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	for _, p := range in.Drives.Problems {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Down != "" && strings.HasPrefix(p, in.Down[n.Name]) }) { // its node says it
			out.Problems = append(out.Problems, p)
		}
	}
	o := overview.Join(in.Drives.Machine.Name, all)
	o.Waits = slices.DeleteFunc(o.Waits, func(i overview.Item) bool { // what is wrong shows its next step itself
		return i.Text == "" && slices.ContainsFunc(o.Wrong, func(w overview.Item) bool { return w.Kind == i.Kind && w.ID == i.ID && w.State == i.State })
	})
	out.All = [3]int{len(o.Wrong), len(o.Doing), len(o.Waits)}
	for _, list := range []*[]overview.Item{&o.Wrong, &o.Doing, &o.Waits} {
		*list = (*list)[:min(len(*list), mostItems)]
	}
	out.Overview = o
	return out, nodes
}

// overviewOf says how a node is. Of one that is down that is the first thing to know: what is shown of it is old.
func overviewOf(name string, v *view, down string) overview.Overview {
	o := overview.Of(overview.Input{Drives: v.drives, Volumes: v.volumes})
	if down == "" {
		return o
	}
	o.Verdict = max(o.Verdict, overview.CannotTell)
	text := down + ": what is shown of it is old"
	if n := len(v.volumes.Volumes); n > 0 {
		text += fmt.Sprintf(", and its volumes cannot be used (%d)", n)
	}
	o.Doing, o.Waits = nil, nil
	o.Wrong = []overview.Item{{Kind: "node", ID: name, Verdict: o.Verdict, State: "NOT REPORTING", Text: text,
		Next: fmt.Sprintf("`kubectl get pods --all-namespaces --selector app.kubernetes.io/name=drivebay --field-selector spec.nodeName=%s` shows the pod of its daemon", name)}}
	return o
}

// enclosures returns the drives of a node by enclosures and bays, those that are in no bay last.
func (v *view) enclosures() (out []Enclosure) {
	drives := slices.Clone(v.drives.Drives)
	slices.SortStableFunc(drives, func(a, b drivebay.Drive) int {
		bare := func(d drivebay.Drive) int { return min(len(d.Slot.Bay), 1) }
		return cmp.Or(cmp.Compare(bare(b), bare(a)), natural(a.Slot.Enclosure, b.Slot.Enclosure), natural(a.Slot.Bay, b.Slot.Bay), natural(a.Name, b.Name))
	})
	last := ""
	for i := range drives {
		d := &drives[i]
		t := "in no bay"
		if d.Slot.Bay != "" {
			t = title(d.Slot.Enclosure)
		}
		if i == 0 || t != last {
			out, last = append(out, Enclosure{Title: t}), t
		}
		e := &out[len(out)-1]
		e.Drives = append(e.Drives, v.row(d))
	}
	return out
}

// row makes the row of a drive.
func (v *view) row(d *drivebay.Drive) Row {
	r := Row{ID: d.ID, Name: d.Name, Bay: d.Slot.Bay, Serial: d.Serial, Model: modelOf(d), Kind: d.Type.String(), Size: render.Bytes(d.Size), Health: d.Health.String(),
		Gone: d.Status == drivebay.StatusOffline, Lit: d.Slot.Lit, Fault: d.Slot.FaultLit}
	switch {
	case r.Gone:
		r.Mark = d.Status.String()
	case d.Usage != drivebay.UsageInUse:
		r.Mark = d.Usage.String()
	case d.Cordoned:
		r.Mark = "cordoned"
	case d.System:
		r.Mark = "system"
	}
	for _, f := range d.Findings {
		r.Codes = append(r.Codes, f.Code)
	}
	if len(d.Findings) > 0 {
		r.Why = d.Findings[0].Text
	}
	for _, vol := range v.on[d.ID] {
		r.Volumes = append(r.Volumes, cmp.Or(vol.Name, vol.ID))
	}
	if d.Leaving != nil {
		r.Percent = percent(d.Leaving.Progress)
	}
	return r
}

// OfClusterDrive makes what the page of a cluster shows of a drive; nil: it is not known.
func OfClusterDrive(in ClusterInput, id string) *Detail {
	if in.Drives == nil {
		return nil
	}
	d, ok := in.Drives.Get(id)
	if !ok {
		return nil
	}
	v := in.views()[d.Node]
	d, _ = v.drives.Get(id)
	out := &Detail{Node: d.Node, Server: in.Machines[d.Node].Server(), Down: in.down(d.Node), Drive: driveOf(v.drives, d), Volumes: []Volume{}}
	for _, vol := range v.on[id] {
		out.Volumes = append(out.Volumes, volumeOf(vol))
		out.Drive.Volumes = append(out.Drive.Volumes, vol.ID)
	}
	if o := v.drives.Successor(d); o != nil {
		after := driveOf(v.drives, o)
		out.After = &after
	}
	if out.Down == "" {
		out.Commands = commandsOf(out.Drive)
	}
	out.Drive.Actions = nil
	return out
}

// commands are those of the actions, by what they do.
var commands = map[string]string{"release": "replace %s", "approve": "approve %s", "cancel": "cancel %s", "accept": "accept %s"}

// commandsOf returns the commands for what an operator may do about a drive now. The id is the name of an object: it
// needs no quotes in a shell.
func commandsOf(d Drive) (out []Command) {
	for _, a := range d.Actions {
		format, ok := commands[a.Do]
		switch {
		case ok:
		case a.Do == "cordon" && a.On:
			format = "cordon %s"
		case a.Do == "cordon":
			format = "uncordon %s"
		case a.Do == "locate" && a.On:
			format = "locate %s on"
		case a.Do == "locate":
			format = "locate %s off"
		default: // works on the node only
			continue
		}
		out = append(out, Command{Label: a.Label, Effect: a.Effect, Command: kubectl.Command + " " + fmt.Sprintf(format, d.ID), Primary: a.Primary || a.Do == "cancel" || a.Do == "accept"})
	}
	return out
}

// natural compares names with numbers as people do: "node-9" is before "node-10".
func natural(a, b string) int {
	digits := func(s string) int {
		return len(s) - len(strings.TrimLeft(s, "0123456789"))
	}
	for a != "" && b != "" {
		if m, n := digits(a), digits(b); m > 0 && n > 0 {
			x, y := strings.TrimLeft(a[:m], "0"), strings.TrimLeft(b[:n], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[m:], b[n:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}
