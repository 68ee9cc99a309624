package lvm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// lvFields returns the row of the report for a volume.
func (c report) lvFields(v *lv) fields {
	f := fields{"lv_uuid": v.uuid, "lv_name": v.name, "lv_parent": "", "lv_layout": "linear", "lv_role": v.role(), "lv_size": fmt.Sprint(v.size()), "origin": "", "pool_lv": "",
		"lv_tags": strings.Join(v.tags, ","), "lv_path": "", "lv_kernel_major": "-1", "lv_kernel_minor": "-1", "lv_active": "", "lv_live_table": "unknown", "lv_suspended": "unknown", "lv_device_open": "unknown",
		"lv_permissions": v.permissions(), "lv_health_status": c.health(v), "lv_when_full": "", "data_percent": "", "metadata_percent": "", "copy_percent": "",
		"raid_sync_action": "", "raid_mismatch_count": "", "move_pv_uuid": ""}
	switch v.kind {
	case "raid1":
		f["lv_layout"] = "raid,raid1"
	case "thin-pool":
		f["lv_layout"], f["lv_when_full"] = "thin,pool", map[bool]string{true: "error", false: "queue"}[v.failFull]
	case "thin":
		f["lv_layout"], f["pool_lv"] = "thin,sparse", v.pool.name
	}
	if v.cached {
		f["lv_layout"] = "cache"
	}
	if v.origin != nil {
		f["origin"] = v.origin.name
	}
	if v.parent != nil {
		f["lv_parent"] = v.parent.name
	}
	if v.visible() {
		f["lv_path"] = "/dev/" + v.path()
	}
	if v.dev != nil {
		v.activeFields(f)
	}
	f["lv_attr"] = c.attr(v, f)
	return f
}

func (v *lv) activeFields(f fields) {
	f["lv_kernel_major"], f["lv_kernel_minor"], _ = strings.Cut(v.dev.Num, ":")
	f["lv_active"], f["lv_live_table"], f["lv_suspended"], f["lv_device_open"] = "active", "live table present", "", ""
	if v.dev.Handles > 0 || len(v.dev.Above) > 0 || v.dev.Mounted {
		f["lv_device_open"] = "open"
	}
	percent := func(n, of uint64) string { return fmt.Sprintf("%.2f", min(100, 100*float64(n)/float64(max(of, 1)))) }
	switch v.kind {
	case "raid1":
		f["raid_sync_action"], f["raid_mismatch_count"] = "idle", "0"
		f["copy_percent"] = percent(v.recovered(), v.extents) // failed legs do not count
		if v.recovered() < v.extents {
			f["raid_sync_action"] = "recover"
		}
	case "thin-pool":
		f["data_percent"] = percent(v.used, v.size()/chunkSize)
		f["metadata_percent"] = fmt.Sprintf("%.2f", min(100, 10.84+100*float64(64*v.used)/float64(v.meta.size())))
	case "thin":
		f["data_percent"] = percent(uint64(len(v.chunks)), v.size()/chunkSize)
	}
}

func (v *lv) role() string {
	switch v.part {
	case "rimage":
		return "private,raid,image"
	case "rmeta":
		return "private,raid,metadata"
	case "tdata":
		return "private,thin,pool,data"
	case "tmeta":
		return "private,thin,pool,metadata"
	case "spare":
		return "private,pool,spare"
	}
	if v.kind == "thin-pool" {
		return "private"
	}
	role := "public"
	thickness := map[bool]string{true: "thin", false: "thick"}[v.kind == "thin"]
	if slices.ContainsFunc(v.group.lvs, func(x *lv) bool { return x.origin == v }) {
		role += ",origin," + thickness + "origin"
	}
	if v.origin != nil {
		role += ",snapshot," + thickness + "snapshot"
	}
	return role
}

func (v *lv) permissions() string {
	switch {
	case v.part == "spare":
		return "unknown"
	case v.readOnly:
		return "read-only"
	}
	return "writeable"
}

// health returns LVM's health status; "" is healthy.
func (c *scan) health(v *lv) string {
	if slices.ContainsFunc(v.under(), func(x *lv) bool {
		return slices.ContainsFunc(x.areas, func(a area) bool { return c.missing(a.pv) })
	}) {
		return "partial"
	}
	switch {
	case v.kind == "raid1" && v.dev != nil && slices.Contains(v.failed, true):
		return "refresh needed"
	case v.kind == "thin-pool" && v.dev != nil && v.used >= v.size()/chunkSize:
		return "out_of_data"
	}
	return ""
}

// attr returns the ten characters of lvs(8), "lv_attr bits".
func (c report) attr(v *lv, f fields) string {
	a := []byte("-wi-------")
	switch {
	case v.part == "rimage":
		a[0] = 'i'
		if i := slices.Index(v.parent.images, v); i >= 0 && v.parent.failed[i] || f["lv_health_status"] == "partial" {
			a[0] = 'I'
		}
	case v.part == "tdata":
		a[0] = 'T'
	case v.part != "":
		a[0] = 'e'
	case v.kind == "linear" && v.origin != nil:
		a[0] = 's'
	case v.kind == "raid1":
		a[0] = 'r'
	case v.kind == "thin-pool":
		a[0] = 't'
	case v.kind == "thin":
		a[0] = 'V'
	}
	if v.readOnly {
		a[1] = 'r'
	}
	if v.group.move != nil && v.group.move.moves(v) {
		a[2] = 'I'
	}
	if v.dev != nil {
		a[4] = 'a'
		if f["lv_device_open"] == "open" {
			a[5] = 'o'
		}
	}
	switch {
	case v.kind == "raid1" || strings.HasPrefix(v.part, "r"):
		a[6] = 'r'
	case v.kind == "thin" || v.kind == "thin-pool":
		a[6] = 't'
		if pool := cmp.Or(v.pool, v); !pool.unzeroed {
			a[7] = 'z'
		}
	}
	switch f["lv_health_status"] {
	case "partial":
		a[8] = 'p'
	case "refresh needed":
		a[8] = 'r'
	case "out_of_data":
		a[8] = 'D'
	}
	if v.skip {
		a[9] = 'k'
	}
	return string(a)
}

// fields returns the rows of a move and its two hidden volumes.
func (x *relocation) fields() []fields {
	g := x.from.group
	row := func(uuid, name, parent, attr, layout, role string) fields {
		return fields{"lv_uuid": uuid, "lv_name": name, "lv_parent": parent, "lv_attr": attr, "lv_layout": layout, "lv_role": role, "lv_size": fmt.Sprint(x.total * g.extent),
			"origin": "", "pool_lv": "", "lv_tags": "", "lv_path": "", "lv_kernel_major": "-1", "lv_kernel_minor": "-1", "lv_active": "active", "lv_live_table": "live table present", "lv_suspended": "",
			"lv_device_open": "open", "lv_permissions": "writeable", "lv_health_status": "", "lv_when_full": "", "data_percent": "", "metadata_percent": "",
			"copy_percent": "", "raid_sync_action": "", "raid_mismatch_count": "", "move_pv_uuid": ""}
	}
	top := row(x.uuid, "pvmove0", "", "p-C-aom---", "mirror", "private,pvmove")
	top["lv_permissions"], top["move_pv_uuid"] = "", x.from.uuid
	if top["copy_percent"] = fmt.Sprintf("%.2f", 100*float64(x.done)/float64(x.total)); x.since.IsZero() {
		top["copy_percent"], top["lv_active"], top["lv_attr"] = "", "", "p-C---m---"
	}
	rows := []fields{top,
		row(x.legs[0], "pvmove0_mimage_0", "pvmove0", "Iwi-aom---", "linear", "private,mirror,image"),
		row(x.legs[1], "pvmove0_mimage_1", "pvmove0", "Iwi-aom---", "linear", "private,mirror,image")}
	if x.since.IsZero() {
		for _, r := range rows[1:] {
			r["lv_active"], r["lv_attr"] = "", "Iwi---m---"
		}
	}
	return rows
}

func (c report) moveSegments(x *relocation) []fields {
	rows := []fields{segment(x.uuid, "mirror", 0, x.total, "pvmove0_mimage_0(0)", "pvmove0_mimage_1(0)")}
	legs := [2][]area{nil, x.to}
	for _, v := range x.lvs {
		for _, a := range v.areas {
			if a.pv == x.from {
				legs[0] = append(legs[0], a)
			}
		}
	}
	for i, areas := range legs {
		at := uint64(0)
		for _, a := range areas {
			rows = append(rows, segment(x.legs[i], "linear", at, a.n, fmt.Sprintf("%s(%d)", c.pvFields(a.pv)["pv_name"], a.start)))
			at += a.n
		}
	}
	return rows
}
