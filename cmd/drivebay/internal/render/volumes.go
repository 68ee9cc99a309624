package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// backings are the names of backings in a class, by the location of a volume.
var backings = map[drivebay.LocationKind]drivebay.Backing{
	drivebay.LocationDrive: drivebay.BackingDrive, drivebay.LocationPartition: drivebay.BackingPartition, drivebay.LocationLVM: drivebay.BackingLVM,
	drivebay.LocationThin: drivebay.BackingThin, drivebay.LocationMirror: drivebay.BackingMirror,
}

var operationalColor = map[drivebay.OperationalStatus]string{
	drivebay.Inoperative: red, drivebay.Missing: red, drivebay.OperationalUnknown: magenta, drivebay.Maintenance: yellow,
}

var severityColor = map[drivebay.Severity]string{
	drivebay.SeverityDegraded: yellow, drivebay.SeverityInaccessible: red, drivebay.SeverityDataLoss: red,
}

// shortID is how many characters of an ID distinguish a volume from others.
const shortID = 10

// onDrives is a volume and its drives, as far as they are known.
type onDrives struct {
	*drivebay.VolumeView
	drives []*drivebay.Drive
}

func find(s *drivebay.Snapshot, ids []string) []*drivebay.Drive {
	out := make([]*drivebay.Drive, len(ids))
	for i, id := range ids {
		out[i] = &drivebay.Drive{ID: id, Name: cut(id, shortID+1)}
		if s == nil {
			continue
		}
		if j := slices.IndexFunc(s.Drives, func(d drivebay.Drive) bool { return d.ID == id }); j >= 0 {
			out[i] = &s.Drives[j]
		}
	}
	return out
}

// each returns what say returns for every drive, joined by commas.
func (v onDrives) each(say func(*drivebay.Drive) string) string {
	var all []string
	for _, d := range v.drives {
		all = append(all, dash(say(d)))
	}
	return strings.Join(all, ",")
}

type volumeColumn struct {
	column
	when func(wide bool) bool // nil: always
	cell func(onDrives) cell
}

func wideOnly(wide bool) bool   { return wide }
func narrowOnly(wide bool) bool { return !wide }

func textOfVolume(f func(onDrives) string) func(onDrives) cell {
	return func(v onDrives) cell { return cell{text: dash(f(v))} }
}

var volumeColumns = []volumeColumn{
	{column{head: "ID", drop: 3}, narrowOnly, textOfVolume(func(v onDrives) string { return v.ID[:min(shortID, len(v.ID))] })},
	{column{head: "ID"}, wideOnly, textOfVolume(func(v onDrives) string { return v.ID })},
	{column{head: "NAME"}, nil, textOfVolume(func(v onDrives) string { return cut(v.Name, 44) })},
	{column{head: "NODE"}, wideOnly, textOfVolume(func(v onDrives) string { return v.Node })},
	{column{head: "SIZE", right: true}, nil, textOfVolume(func(v onDrives) string { return Binary(v.Size) })},
	{column{head: "MODE", drop: 4}, nil, textOfVolume(func(v onDrives) string { return mode(&v.Volume) })},
	{column{head: "BACKING", drop: 5}, nil, textOfVolume(func(v onDrives) string { return string(backings[v.Location.Kind]) })},
	{column{head: "DRIVE", drop: 1}, nil, textOfVolume(func(v onDrives) string { return v.each(func(d *drivebay.Drive) string { return d.Name }) })},
	{column{head: "BAY", drop: 2}, nil, textOfVolume(func(v onDrives) string { return v.each(func(d *drivebay.Drive) string { return d.Slot.Bay }) })},
	{column{head: "STATUS"}, nil, func(v onDrives) cell {
		return cell{v.OperationalStatus.String(), operationalColor[v.OperationalStatus]}
	}},
	{column{head: "CSI"}, wideOnly, textOfVolume(func(v onDrives) string { return v.CSIStatus.String() })},
	{column{head: "USAGE"}, wideOnly, textOfVolume(func(v onDrives) string { return v.Usage.String() })},
	{column{head: "PATHS", right: true}, wideOnly, textOfVolume(func(v onDrives) string { return strconv.Itoa(len(v.Publications)) })},
	{column{head: "WORK"}, wideOnly, textOfVolume(func(v onDrives) string { return v.Work })},
	{column{head: "HEALTH"}, nil, func(v onDrives) cell { return cell{v.Health.String(), healthColor[v.Health]} }},
	{column{head: "CONDITION"}, nil, func(v onDrives) cell { return conditionCell(v.Condition) }},
}

func conditionCell(c drivebay.Condition) cell {
	if !c.Abnormal() {
		return cell{}
	}
	return cell{c.Message(), severityColor[c.Severity()]}
}

// mode returns the mode of a volume and its filesystem: "FS ext4", "RAW".
func mode(v *drivebay.Volume) string { return strings.TrimSpace(v.Mode.String() + " " + v.FSType) }

// OrderVolumes sorts volumes by name, with the numbers in them as numbers.
func OrderVolumes(list []*drivebay.VolumeView) []*drivebay.VolumeView {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b *drivebay.VolumeView) int {
		return cmp.Or(natural(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Volumes lists volumes in the order given, with a summary. Drives have the names that
// they have in set.Drives.
func Volumes(set *drivebay.VolumeSet, s Style, wide bool) string {
	if len(set.Volumes) == 0 {
		return "no volumes\n" + foundVolumes(set.Found)
	}
	var t table
	var cells []func(onDrives) cell
	for _, c := range volumeColumns {
		if c.when == nil || c.when(wide) {
			t.columns, cells = append(t.columns, c.column), append(cells, c.cell)
		}
	}
	if wide {
		s.Width = 0
	}
	for _, v := range set.Volumes {
		row := make([]cell, len(cells))
		for i, f := range cells {
			row[i] = f(onDrives{v, find(set.Drives, v.Location.Drives)})
		}
		t.add(row...)
	}
	return t.String(s) + volumeSummary(set.Volumes, s) + "\n" + foundVolumes(set.Found)
}

// foundVolumes lists volumes on drives that are not claimed, with the commands that
// adopt them.
func foundVolumes(found []drivebay.FoundVolume) string {
	var b strings.Builder
	for _, f := range found {
		name := ""
		if f.Name != "" {
			name = " (" + Clean(f.Name) + ")"
		}
		drives := Clean(strings.Join(f.Drives, " "))
		fmt.Fprintf(&b, "found on drives that are not claimed, and not used: volume %s%s, %v, %s, on %s: `drivebay claim %s` or `drivebay volume adopt %s`\n",
			Clean(f.ID), name, f.Kind, Binary(f.Size), drives, drives, Clean(f.ID))
	}
	return b.String()
}

// volumeSummary counts volumes: "3 volumes: 2 OPERATIVE, 1 MISSING; 1 abnormal".
func volumeSummary(list []*drivebay.VolumeView, s Style) string {
	by, abnormal := map[drivebay.OperationalStatus]int{}, 0
	for _, v := range list {
		by[v.OperationalStatus]++
		if v.Condition.Abnormal() {
			abnormal++
		}
	}
	var parts []string
	for status := drivebay.OperationalUnknown; status <= drivebay.OperationalRemoved; status++ {
		if n := by[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.paint(operationalColor[status], status.String())))
		}
	}
	text := count(len(list), "volume", "volumes") + ": " + strings.Join(parts, ", ")
	if abnormal > 0 {
		text += fmt.Sprintf("; %d %s", abnormal, s.paint(yellow, "abnormal"))
	}
	return text
}

// Snapshots lists the snapshots of volumes.
func Snapshots(list []drivebay.VolumeSnapshot, volumes *drivebay.VolumeSet, s Style) string {
	if len(list) == 0 {
		return "no snapshots\n"
	}
	t := table{columns: []column{{head: "ID"}, {head: "NAME"}, {head: "OF VOLUME"}, {head: "SIZE", right: true}, {head: "MADE"}}}
	for _, snap := range list {
		of := snap.Source
		if v, ok := volumes.Get(of); ok {
			of = v.Name
		}
		t.add(plain(snap.ID, snap.Name, of, Binary(snap.Size), s.made(snap.Created))...)
	}
	return t.String(s)
}

// CalledVolume names a volume by its ID and name.
func CalledVolume(v *drivebay.Volume) string {
	return fmt.Sprintf("volume %s (%s)", v.ID, Clean(v.Name))
}
