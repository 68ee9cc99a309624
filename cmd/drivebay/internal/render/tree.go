package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Node is a part of the tree of a machine: the machine, an enclosure, a bay, a drive, a volume, a mount, or
// another use of a drive.
type Node struct {
	Kind     string  `json:"kind"`
	ID       string  `json:"id,omitempty"`
	Name     string  `json:"name,omitempty"`
	Bay      string  `json:"bay,omitempty"` // of a drive
	Health   string  `json:"health,omitempty"`
	State    string  `json:"state,omitempty"` // of a volume, and of a drive that is not simply in use
	Text     string  `json:"text,omitempty"`
	Children []*Node `json:"children,omitempty"`

	color string
}

// forest makes the nodes of a machine.
type forest struct {
	s       *drivebay.Snapshot
	set     *drivebay.VolumeSet // nil: the volumes are not known
	volumes map[string][]*drivebay.VolumeView
	uses    map[drivebay.Use][]string // by use, the drives that have it
}

// TreeOf returns the tree of a machine: its enclosures and bays, the drives, what depends on them, and where
// it is mounted. Without a set the volumes are not known.
func TreeOf(s *drivebay.Snapshot, set *drivebay.VolumeSet) *Node {
	f := forest{s: s, set: set, volumes: volumesByDrive(set), uses: map[drivebay.Use][]string{}}
	drives := Order(s.Drives)
	for i := range drives {
		for _, u := range drives[i].Uses {
			f.uses[u] = append(f.uses[u], drives[i].ID)
		}
	}
	root := &Node{Kind: "machine", Name: s.Machine.Name}
	groups := map[string]*Node{}
	group := func(kind, name string) *Node {
		if groups[kind+name] == nil {
			groups[kind+name] = &Node{Kind: kind, Name: name}
			root.Children = append(root.Children, groups[kind+name])
		}
		return groups[kind+name]
	}
	for _, slot := range f.slots(drives) {
		kind := "enclosure"
		if slot.Enclosure == "" {
			kind = "slots"
		}
		at := group(kind, slot.Enclosure)
		here := slices.DeleteFunc(slices.Clone(drives), func(d drivebay.Drive) bool { return d.Slot.Enclosure != slot.Enclosure || d.Slot.Bay != slot.Bay })
		for i := range here {
			at.Children = append(at.Children, f.drive(&here[i]))
		}
		if len(here) == 0 {
			at.Children = append(at.Children, &Node{Kind: "bay", Bay: slot.Bay, Text: "empty"})
		}
	}
	for i := range drives {
		if d := &drives[i]; d.Slot.Bay == "" {
			at := group("bayless", "")
			at.Children = append(at.Children, f.drive(d))
		}
	}
	if lost := f.lost(); len(lost) > 0 {
		root.Children = append(root.Children, &Node{Kind: "lost", Children: lost})
	}
	return root
}

// slots returns every bay of the machine, and those of drives that are gone, in their order.
func (f *forest) slots(drives []drivebay.Drive) []drivebay.Slot {
	var all []drivebay.Drive // in the order of drives
	for _, b := range f.s.Bays {
		all = append(all, drivebay.Drive{Slot: drivebay.Slot{Enclosure: b.Enclosure, Bay: b.Bay}})
	}
	for i := range drives {
		if slot := drives[i].Slot; slot.Bay != "" {
			all = append(all, drivebay.Drive{Slot: drivebay.Slot{Enclosure: slot.Enclosure, Bay: slot.Bay}})
		}
	}
	var out []drivebay.Slot
	for _, d := range Order(all) {
		if len(out) == 0 || out[len(out)-1] != d.Slot {
			out = append(out, d.Slot)
		}
	}
	return out
}

func (f *forest) drive(d *drivebay.Drive) *Node {
	n := &Node{Kind: "drive", ID: d.ID, Name: d.Name, Bay: d.Slot.Bay, Health: d.Health.String(), color: healthColor[d.Health]}
	var state []string
	if d.Status != drivebay.StatusOnline {
		state = append(state, d.Status.String())
	}
	if d.Usage != drivebay.UsageInUse && d.Usage != drivebay.UsageUnknown {
		state = append(state, d.Usage.String())
	}
	if d.Cordoned {
		state = append(state, "CORDONED")
	}
	n.State = strings.Join(state, ",")
	reason := why(d)
	if d.Leaving != nil { // the state says it
		reason = strings.TrimPrefix(strings.TrimPrefix(reason, d.Usage.String()), ": ")
	}
	kind := d.Type.String()
	if d.Type == drivebay.TypeUnknown {
		kind = ""
	}
	n.Text = strings.Join(slices.DeleteFunc([]string{kind, size(d.Size), cut(d.Model, 28), strings.TrimSpace(reason)}, func(s string) bool { return s == "" || s == "-" }), "  ")
	for _, v := range f.volumes[d.ID] {
		n.Children = append(n.Children, f.volume(v, d.ID))
	}
	n.Children = append(n.Children, f.foreign(d)...)
	return n
}

// volume returns the node of a volume below one of its drives, which names the other ones.
func (f *forest) volume(v *drivebay.VolumeView, on string) *Node {
	n := &Node{Kind: "volume", ID: v.ID, Name: v.Name, Health: v.Health.String(), State: v.OperationalStatus.String(), color: healthColor[v.Health]}
	text := []string{Binary(v.Size), mode(&v.Volume), cmp.Or(string(backings[v.Location.Kind]), "unknown")}
	if i, legs := slices.Index(v.Location.Drives, on), len(v.Location.Drives); i < 0 {
		text = append(text, "on "+f.names(v.Location.Drives, on))
	} else if legs > 1 {
		part := fmt.Sprintf("part %d of %d", i+1, legs)
		if v.Location.Kind == drivebay.LocationMirror {
			part = fmt.Sprintf("leg %d of %d", i+1, legs)
		}
		text = append(text, part+", also on "+f.names(v.Location.Drives, on))
	}
	if v.Work != "" {
		text = append(text, v.Work)
	}
	if v.Condition.Abnormal() {
		text = append(text, v.Condition.Severity().String()+" "+v.Condition[0].Reason)
	}
	n.Text = strings.Join(text, "  ")
	for _, p := range v.Publications {
		mount := &Node{Kind: "mount", Name: p.Path}
		var words []string
		if p.Staging {
			words = append(words, "staging path")
		}
		if p.ReadOnly {
			words = append(words, "read-only")
		}
		mount.Text = strings.Join(words, ", ")
		n.Children = append(n.Children, mount)
	}
	return n
}

// names returns the drives of ids other than one, with their bays.
func (f *forest) names(ids []string, other string) string {
	var out []string
	for _, d := range find(f.s, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == other })) {
		name := d.Name
		if d.Slot.Bay != "" {
			name += " (bay " + d.Slot.Bay + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// foreign returns the nodes of what else depends on a drive. Where the volumes are known, they stand for
// the partitions and mounts of drivebay.
func (f *forest) foreign(d *drivebay.Drive) (out []*Node) {
	for _, u := range d.Uses {
		if u.Ours && f.set != nil || u.Kind == "partition" && u.What == "" {
			continue
		}
		n := &Node{Kind: u.Kind, Name: cmp.Or(u.What, u.Device)}
		if u.What != "" {
			n.Text = u.Device
		}
		if shared := f.uses[u]; len(shared) > 1 { // a RAID, or what is on it
			n.Text = strings.TrimSpace(n.Text + "  also on " + f.names(shared, d.ID))
		}
		out = append(out, n)
	}
	if f.set != nil {
		for _, v := range f.set.Found {
			if slices.Contains(v.Drives, d.ID) {
				out = append(out, &Node{Kind: "foundVolume", ID: v.ID, Name: cmp.Or(v.Name, v.ID), Text: Binary(v.Size) + "  not used: " + cmp.Or(v.Issue, "the drive is not claimed")})
			}
		}
	}
	if d.Content.Kind == drivebay.ContentForeign && len(out) == 0 {
		out = append(out, &Node{Kind: "content", Text: holds(d.Content)})
	}
	return out
}

// lost returns the volumes none of whose drives is known.
func (f *forest) lost() (out []*Node) {
	if f.set == nil {
		return nil
	}
	for _, v := range OrderVolumes(f.set.Volumes) {
		if !slices.ContainsFunc(v.Location.Drives, func(id string) bool {
			return slices.ContainsFunc(f.s.Drives, func(d drivebay.Drive) bool { return d.ID == id })
		}) {
			out = append(out, f.volume(v, ""))
		}
	}
	return out
}

// Tree draws a tree. What does not fit a line continues below its beginning.
func Tree(n *Node, s Style) string {
	var out strings.Builder
	out.WriteString(s.paint(bold, Clean(cmp.Or(n.Name, "this machine"))) + "\n")
	if len(n.Children) == 0 {
		out.WriteString("no drives\n")
	}
	s.branches(&out, n.Children, "")
	return out.String()
}

func (s Style) branches(out *strings.Builder, nodes []*Node, indent string) {
	for i, n := range nodes {
		branch, below := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, below = "└─ ", "   "
		}
		more := "   "
		if len(n.Children) > 0 {
			more = "│  "
		}
		room := 0
		if s.Width > 0 {
			room = max(s.Width-columnsOf(indent+branch+more), narrowed)
		}
		for j, line := range s.nodeLines(n, room) {
			if j == 0 {
				out.WriteString(indent + branch + line + "\n")
			} else {
				out.WriteString(indent + below + more + line + "\n")
			}
		}
		s.branches(out, n.Children, indent+below)
	}
}

// nodeLines returns the lines of a node, with the health in color. Its name and health come first.
func (s Style) nodeLines(n *Node, room int) []string {
	title := Clean(n.title())
	text := strings.Join(slices.DeleteFunc([]string{title, n.Health, n.State, Clean(n.Text)}, func(s string) bool { return s == "" }), "  ")
	all := lines(text, room)
	if n.Health == "" {
		return all
	}
	behind := strings.Join(strings.Fields(title), " ") // a broken text has single spaces
	for i, line := range all {
		from := 0
		if i == 0 {
			from = min(len(behind), len(line))
		}
		if at := strings.Index(line[from:], n.Health); at >= 0 {
			all[i] = line[:from+at] + s.paint(n.color, n.Health) + line[from+at+len(n.Health):]
			break
		}
	}
	return all
}

// titles are the titles of nodes without a name.
var titles = map[string]string{"slots": "slots without an enclosure", "bayless": "no bay", "lost": "on no drive of this machine"}

func (n *Node) title() string {
	switch n.Kind {
	case "drive":
		if n.Bay == "" {
			return n.Name
		}
		return "bay " + n.Bay + "  " + n.Name
	case "bay":
		return "bay " + n.Bay
	case "foundVolume":
		return "found volume " + n.Name
	}
	return cmp.Or(titles[n.Kind], strings.TrimSpace(n.Kind+" "+n.Name))
}
