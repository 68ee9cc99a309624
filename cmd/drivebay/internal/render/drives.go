package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// driveRow is a drive in a list, with the names of the volumes on it.
type driveRow struct {
	*drivebay.Drive
	volumes []string
	known   bool // the volumes are known
}

func textOf(f func(driveRow) string) func(driveRow) cell {
	return func(d driveRow) cell { return cell{text: dash(f(d))} }
}

// A narrow screen shows at most so many lines of a text that `drivebay explain` shows in full. Such a
// text has at least whyWidth columns.
const (
	whyLines = 3
	whyWidth = 20
)

var driveFields = []field[driveRow]{
	{column: column{head: "NODE"}, on: inCluster, cell: textOf(func(d driveRow) string { return d.Node })},
	{column: column{head: "ENCLOSURE"}, on: wideOnly, cell: textOf(func(d driveRow) string { return d.Slot.Enclosure })},
	{column: column{head: "BAY", wrap: 8}, cell: func(d driveRow) cell { return bayCell(d.Drive) }},
	{column: column{head: "NAME"}, cell: textOf(func(d driveRow) string { return d.Name })},
	{column: column{head: "ID"}, on: wideOnly, cell: textOf(func(d driveRow) string { return d.ID })},
	{column: column{head: "TYPE", drop: 4}, cell: textOf(func(d driveRow) string { return d.Type.String() })},
	{column: column{head: "TRANSPORT"}, on: wideOnly, cell: textOf(func(d driveRow) string { return d.Transport.String() })},
	{column: column{head: "SIZE", right: true, drop: 3}, cell: textOf(func(d driveRow) string { return size(d.Size) }), rank: func(d driveRow) float64 { return float64(d.Size) }},
	{column: column{head: "MODEL", drop: 7, wrap: 16}, cell: textOf(func(d driveRow) string { return d.Model })},
	{column: column{head: "SERIAL", drop: 5}, cell: textOf(func(d driveRow) string { return d.Serial })},
	{column: column{head: "FIRMWARE"}, on: wideOnly, cell: textOf(func(d driveRow) string { return d.Firmware })},
	{column: column{head: "WWN"}, on: wideOnly, cell: textOf(func(d driveRow) string { return d.WWN })},
	{column: column{head: "NUMA", right: true}, on: wideOnly, cell: textOf(func(d driveRow) string { return number(d.NUMANode) }), rank: func(d driveRow) float64 { return orLowest(d.NUMANode) }},
	{column: column{head: "PATHS", right: true}, on: wideOnly, cell: textOf(func(d driveRow) string { return strconv.Itoa(len(d.Paths)) })},
	{column: column{head: "HEALTH"}, cell: func(d driveRow) cell { return cell{d.Health.String(), healthColor[d.Health]} }, rank: func(d driveRow) float64 { return float64(d.Health.Rank()) }},
	{column: column{head: "STATUS", drop: 1, wrap: 14}, cell: func(d driveRow) cell { return statusCell(d.Drive) }},
	{column: column{head: "TEMP", right: true, drop: 6}, cell: textOf(func(d driveRow) string { return celsius(d.Temperature) }), rank: func(d driveRow) float64 { return orLowest(d.Temperature) }},
	{column: column{head: "WEAR", right: true, drop: 8}, cell: textOf(func(d driveRow) string { return wear(d.Wear) }), rank: wearRank},
	{column: column{head: "DAYS LEFT", right: true}, on: wideOnly, cell: textOf(func(d driveRow) string { return daysLeft(d.Drive) })},
	{column: column{head: "HOURS", right: true}, on: wideOnly, cell: textOf(func(d driveRow) string { return number(d.PowerOnHours) }), rank: func(d driveRow) float64 { return orLowest(d.PowerOnHours) }},
	{column: column{head: "CONTENT", drop: 9, wrap: 12}, cell: textOf(func(d driveRow) string { return holds(d.Content) })},
	{column: column{head: "VOLUMES", wrap: 12}, cell: textOf(driveRow.names)},
	{column: column{head: "USE", wrap: 12}, cell: textOf(driveRow.use)},
	{column: column{head: "USAGE"}, on: onRequest, cell: textOf(func(d driveRow) string { return d.Usage.String() })},
	{column: column{head: "WHY", wrap: whyWidth, most: whyLines}, cell: func(d driveRow) cell { return cell{text: why(d.Drive)} }},
}

// orLowest returns a number, and less than every number for one that is not known.
func orLowest[T int | uint64](n *T) float64 {
	if n == nil {
		return math.Inf(-1)
	}
	return float64(*n)
}

func wearRank(d driveRow) float64 {
	if d.Wear == nil {
		return math.Inf(-1)
	}
	return float64(d.Wear.PercentUsed)
}

// names returns the names of the volumes on the drive.
func (d driveRow) names() string {
	if !d.known {
		return "?"
	}
	return strings.Join(d.volumes, ", ")
}

// use describes what uses the drive. Where the volumes are known, the column beside has those of drivebay.
func (d driveRow) use() string {
	if !d.known {
		return use(d.Drive)
	}
	foreign := *d.Drive
	foreign.Uses = slices.DeleteFunc(slices.Clone(d.Uses), func(u drivebay.Use) bool { return u.Ours })
	return use(&foreign)
}

func bayCell(d *drivebay.Drive) cell {
	text := dash(d.Slot.Bay)
	if d.Slot.Lit {
		text += "*"
	}
	return cell{text: text}
}

func statusCell(d *drivebay.Drive) cell {
	c := cell{text: status(d)}
	if d.Status != drivebay.StatusOnline {
		c.color = red
	}
	return c
}

func daysLeft(d *drivebay.Drive) string {
	if d.Wear == nil || d.Wear.DaysLeft == nil {
		return ""
	}
	return strconv.Itoa(int(*d.Wear.DaysLeft))
}

// DriveColumns returns the names of the columns of the list of drives.
func DriveColumns() []string { return names(driveFields) }

func rowsOf(drives []drivebay.Drive, volumes *drivebay.VolumeSet) []driveRow {
	by := volumesByDrive(volumes)
	rows := make([]driveRow, len(drives))
	for i := range drives {
		d := &drives[i]
		rows[i] = driveRow{Drive: d, known: volumes != nil}
		for _, v := range by[d.ID] {
			rows[i].volumes = append(rows[i].volumes, v.Name)
		}
	}
	return rows
}

// volumesByDrive returns the volumes on each drive, in the order of their names.
func volumesByDrive(volumes *drivebay.VolumeSet) map[string][]*drivebay.VolumeView {
	out := map[string][]*drivebay.VolumeView{}
	if volumes == nil {
		return out
	}
	for _, v := range OrderVolumes(volumes.Volumes) {
		for _, id := range v.Location.Drives {
			out[id] = append(out[id], v)
		}
	}
	return out
}

// SortDrives returns drives in the order of a layout; without one, by enclosure and bay.
func SortDrives(drives []drivebay.Drive, volumes *drivebay.VolumeSet, l Layout) []drivebay.Drive {
	out := []drivebay.Drive{}
	for _, row := range sortedBy(driveFields, rowsOf(Order(drives), volumes), l) {
		out = append(out, *row.Drive)
	}
	return out
}

// Drives lists drives in the order given, with a summary. Without volumes they are not known.
func Drives(drives []drivebay.Drive, volumes *drivebay.VolumeSet, s Style, l Layout) string {
	fields := driveFields
	if volumes == nil && len(l.Columns) == 0 {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f field[driveRow]) bool { return f.head == "VOLUMES" })
	}
	if slices.ContainsFunc(drives, func(d drivebay.Drive) bool { return d.Node != "" }) {
		fields = ofCluster(fields)
	}
	text := tableOf(fields, rowsOf(drives, volumes), l, s)
	switch {
	case l.Bare && len(drives) == 0:
		return ""
	case l.Bare:
		return text
	case len(drives) == 0:
		return "no drives\n"
	}
	return text + Summary(drives, s) + "\n"
}

// Summary counts drives: "24 drives: 22 GOOD, 1 SUSPECT, 1 BAD; 1 OFFLINE".
func Summary(drives []drivebay.Drive, s Style) string {
	health, offline := map[drivebay.Health]int{}, 0
	for i := range drives {
		health[drives[i].Health]++
		if drives[i].Status == drivebay.StatusOffline {
			offline++
		}
	}
	var parts []string
	for _, h := range []drivebay.Health{drivebay.HealthGood, drivebay.HealthSuspect, drivebay.HealthBad, drivebay.HealthUnknown} {
		if n := health[h]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.Health(h)))
		}
	}
	text := count(len(drives), "drive", "drives")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if offline > 0 {
		text += fmt.Sprintf("; %d %s", offline, s.paint(red, "OFFLINE"))
	}
	return text
}
