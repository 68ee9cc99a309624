package render

import (
	"cmp"
	"fmt"
	"math"
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

// each returns what say returns for every drive, separated by commas.
func (v onDrives) each(say func(*drivebay.Drive) string) string {
	var all []string
	for _, d := range v.drives {
		all = append(all, dash(say(d)))
	}
	return strings.Join(all, ", ")
}

func textOfVolume(f func(onDrives) string) func(onDrives) cell {
	return func(v onDrives) cell { return cell{text: dash(f(v))} }
}

var volumeFields = []field[onDrives]{
	{column: column{head: "ID", drop: 5}, on: narrowOnly, cell: textOfVolume(func(v onDrives) string { return v.ID[:min(shortID, len(v.ID))] })},
	{column: column{head: "ID"}, on: wideOnly, cell: textOfVolume(func(v onDrives) string { return v.ID })},
	{column: column{head: "NAME", wrap: 20}, cell: textOfVolume(func(v onDrives) string { return v.Name })},
	{column: column{head: "NODE"}, on: wideOrCluster, cell: textOfVolume(func(v onDrives) string { return v.Node })},
	{column: column{head: "SIZE", right: true, drop: 1}, cell: textOfVolume(func(v onDrives) string { return Binary(v.Size) }), rank: func(v onDrives) float64 { return float64(v.Size) }},
	{column: column{head: "USED", right: true, drop: 4}, cell: textOfVolume(onDrives.used), rank: func(v onDrives) float64 { return v.spaceRank(func(p *drivebay.Space) uint64 { return p.Used }) }},
	{column: column{head: "FREE", right: true, drop: 3}, cell: textOfVolume(onDrives.free), rank: func(v onDrives) float64 { return v.spaceRank(func(p *drivebay.Space) uint64 { return p.Free }) }},
	{column: column{head: "MODE", drop: 6}, cell: textOfVolume(func(v onDrives) string { return mode(&v.Volume) })},
	{column: column{head: "BACKING", drop: 7}, cell: textOfVolume(func(v onDrives) string { return string(backings[v.Location.Kind]) })},
	{column: column{head: "DRIVE", drop: 2, wrap: 8}, cell: textOfVolume(func(v onDrives) string { return v.each(func(d *drivebay.Drive) string { return d.Name }) })},
	{column: column{head: "BAY", wrap: 8}, cell: textOfVolume(func(v onDrives) string { return v.each(func(d *drivebay.Drive) string { return d.Slot.Bay }) })},
	{column: column{head: "STATUS"}, cell: func(v onDrives) cell {
		return cell{v.OperationalStatus.String(), operationalColor[v.OperationalStatus]}
	}},
	{column: column{head: "CSI"}, on: wideOnly, cell: textOfVolume(func(v onDrives) string { return v.CSIStatus.String() })},
	{column: column{head: "USAGE"}, on: wideOnly, cell: textOfVolume(func(v onDrives) string { return v.Usage.String() })},
	{column: column{head: "PATHS", right: true}, on: wideOnly, cell: textOfVolume(func(v onDrives) string { return strconv.Itoa(len(v.Publications)) })},
	{column: column{head: "WORK"}, on: wideOnly, cell: textOfVolume(func(v onDrives) string { return v.Work })},
	{column: column{head: "HEALTH"}, cell: func(v onDrives) cell { return cell{v.Health.String(), healthColor[v.Health]} }, rank: func(v onDrives) float64 { return float64(v.Health.Rank()) }},
	{column: column{head: "CONDITION", wrap: 28, most: whyLines}, cell: func(v onDrives) cell { return conditionCell(v.Condition) }, rank: func(v onDrives) float64 { return float64(v.Condition.Severity()) }},
}

// used returns the used part of a mounted filesystem.
func (v onDrives) used() string {
	if v.Space == nil {
		return ""
	}
	return Binary(v.Space.Used)
}

func (v onDrives) free() string {
	if v.Space == nil {
		return ""
	}
	return Binary(v.Space.Free)
}

// spaceRank returns a part of the space, and less than any for a volume whose space is not known.
func (v onDrives) spaceRank(part func(*drivebay.Space) uint64) float64 {
	if v.Space == nil {
		return math.Inf(-1)
	}
	return float64(part(v.Space))
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

// VolumeColumns returns the names of the columns of the list of volumes.
func VolumeColumns() []string { return names(volumeFields) }

func volumeRows(set *drivebay.VolumeSet) []onDrives {
	rows := make([]onDrives, len(set.Volumes))
	for i, v := range set.Volumes {
		rows[i] = onDrives{v, find(set.Drives, v.Location.Drives)}
	}
	return rows
}

// SortVolumes returns the volumes of a set in the order of a layout; without one, by name.
func SortVolumes(set *drivebay.VolumeSet, l Layout) []*drivebay.VolumeView {
	byName := *set
	byName.Volumes = OrderVolumes(set.Volumes)
	out := []*drivebay.VolumeView{}
	for _, row := range sortedBy(volumeFields, volumeRows(&byName), l) {
		out = append(out, row.VolumeView)
	}
	return out
}

// Volumes lists volumes in the order given, with a summary. Drives have the names that
// they have in set.Drives.
func Volumes(set *drivebay.VolumeSet, s Style, l Layout) string {
	fields := volumeFields
	if set.Drives != nil && slices.ContainsFunc(set.Drives.Drives, func(d drivebay.Drive) bool { return d.Node != "" }) {
		fields = ofCluster(fields)
	}
	text := tableOf(fields, volumeRows(set), l, s)
	switch {
	case l.Bare && len(set.Volumes) == 0:
		return ""
	case l.Bare:
		return text
	case len(set.Volumes) == 0:
		return "no volumes\n" + foundVolumes(set.Found)
	}
	return text + volumeSummary(set.Volumes, s) + "\n" + foundVolumes(set.Found)
}

// foundVolumes lists volumes on drives that are not claimed, with the commands that
// adopt them, and volumes that cannot be adopted.
func foundVolumes(found []drivebay.FoundVolume) string {
	var b strings.Builder
	for _, f := range found {
		name := ""
		if f.Name != "" {
			name = " (" + Clean(f.Name) + ")"
		}
		drives := Clean(strings.Join(f.Drives, " "))
		if f.Issue != "" {
			fmt.Fprintf(&b, "found in no record, and not used: volume %s%s, %v, %s, on %s: %s: %s\n", Clean(f.ID), name, f.Kind, Binary(f.Size), drives, Clean(f.Issue), Clean(f.Next))
			continue
		}
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
