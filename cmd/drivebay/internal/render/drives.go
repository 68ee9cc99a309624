package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// driveColumn is a column of the list of drives.
type driveColumn struct {
	column
	wide bool // shown with -o wide only
	cell func(*drivebay.Drive) cell
}

func textOf(f func(*drivebay.Drive) string) func(*drivebay.Drive) cell {
	return func(d *drivebay.Drive) cell { return cell{text: dash(f(d))} }
}

var driveColumns = []driveColumn{
	{column{head: "ENCLOSURE"}, true, textOf(func(d *drivebay.Drive) string { return d.Slot.Enclosure })},
	{column{head: "BAY"}, false, bayCell},
	{column{head: "NAME"}, false, textOf(func(d *drivebay.Drive) string { return d.Name })},
	{column{head: "ID"}, true, textOf(func(d *drivebay.Drive) string { return d.ID })},
	{column{head: "TYPE", drop: 4}, false, textOf(func(d *drivebay.Drive) string { return d.Type.String() })},
	{column{head: "TRANSPORT"}, true, textOf(func(d *drivebay.Drive) string { return d.Transport.String() })},
	{column{head: "SIZE", right: true}, false, textOf(func(d *drivebay.Drive) string { return size(d.Size) })},
	{column{head: "MODEL", drop: 5}, false, textOf(func(d *drivebay.Drive) string { return cut(d.Model, 28) })},
	{column{head: "SERIAL", drop: 3}, false, textOf(func(d *drivebay.Drive) string { return d.Serial })},
	{column{head: "FIRMWARE"}, true, textOf(func(d *drivebay.Drive) string { return d.Firmware })},
	{column{head: "WWN"}, true, textOf(func(d *drivebay.Drive) string { return d.WWN })},
	{column{head: "NUMA", right: true}, true, textOf(func(d *drivebay.Drive) string { return number(d.NUMANode) })},
	{column{head: "PATHS", right: true}, true, textOf(func(d *drivebay.Drive) string { return strconv.Itoa(len(d.Paths)) })},
	{column{head: "HEALTH"}, false, func(d *drivebay.Drive) cell { return cell{d.Health.String(), healthColor[d.Health]} }},
	{column{head: "STATUS", drop: 1}, false, statusCell},
	{column{head: "TEMP", right: true, drop: 6}, false, textOf(func(d *drivebay.Drive) string { return celsius(d.Temperature) })},
	{column{head: "WEAR", right: true, drop: 7}, false, textOf(func(d *drivebay.Drive) string { return wear(d.Wear) })},
	{column{head: "DAYS LEFT", right: true}, true, textOf(daysLeft)},
	{column{head: "HOURS", right: true}, true, textOf(func(d *drivebay.Drive) string { return number(d.PowerOnHours) })},
	{column{head: "CONTENT", drop: 8}, false, textOf(func(d *drivebay.Drive) string { return holds(d.Content) })},
	{column{head: "USE", drop: 2}, false, textOf(use)},
	{column{head: "WHY"}, false, func(d *drivebay.Drive) cell { return cell{text: why(d)} }},
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

// Drives lists drives in the order given, with a summary.
func Drives(drives []drivebay.Drive, s Style, wide bool) string {
	if len(drives) == 0 {
		return "no drives\n"
	}
	var t table
	var cells []func(*drivebay.Drive) cell
	for _, c := range driveColumns {
		if !c.wide || wide {
			t.columns, cells = append(t.columns, c.column), append(cells, c.cell)
		}
	}
	if wide {
		s.Width = 0
	}
	for i := range drives {
		row := make([]cell, len(cells))
		for j, f := range cells {
			row[j] = f(&drives[i])
		}
		t.add(row...)
	}
	return t.String(s) + Summary(drives, s) + "\n"
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
	text := count(len(drives), "drive", "drives") + ": " + strings.Join(parts, ", ")
	if offline > 0 {
		text += fmt.Sprintf("; %d %s", offline, s.paint(red, "OFFLINE"))
	}
	return text
}
