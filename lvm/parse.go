package lvm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The fields of the report, by section (lvmreport(7)).
const (
	groupFields = "vg_uuid,vg_name,vg_size,vg_free,vg_extent_size,vg_free_count,vg_mda_free,vg_seqno,vg_systemid,vg_tags,vg_partial,vg_autoactivation,vg_exported"
	pvFields    = "pv_uuid,pv_name,dev_size,pv_size,pv_free,pe_start,pv_missing,pv_allocatable,pv_duplicate,pv_in_use,pv_mda_count,pv_tags"
	lvFields    = "lv_uuid,lv_name,lv_parent,lv_attr,lv_layout,lv_role,lv_size,origin,pool_lv,lv_tags,lv_path,lv_kernel_major,lv_kernel_minor," +
		"lv_active,lv_live_table,lv_suspended,lv_device_open,lv_permissions,lv_health_status,lv_when_full,data_percent,metadata_percent,copy_percent," +
		"raid_sync_action,raid_mismatch_count,move_pv_uuid"
	segmentFields = "lv_uuid,segtype,seg_start_pe,seg_size_pe,stripes,devices"
	extentFields  = "pv_uuid,lv_uuid,pvseg_start,pvseg_size"
)

// value is a field of a report. LVM 2.03.16 writes every field as a string; the json_std
// of later versions has numbers and lists as well.
type value string

func (v *value) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*v = value(s) // null leaves the empty string
		return nil
	}
	var list []value
	if json.Unmarshal(b, &list) == nil {
		parts := make([]string, len(list))
		for i, one := range list {
			parts[i] = string(one)
		}
		*v = value(strings.Join(parts, ","))
		return nil
	}
	*v = value(b)
	return nil
}

// row holds the fields of one line of a report by name.
type row map[string]value

type section struct {
	Group   []row `json:"vg"`
	PV      []row `json:"pv"`
	LV      []row `json:"lv"`
	Segment []row `json:"seg"`
	Extent  []row `json:"pvseg"`
}

// document drops the lines of LVM's output that are not part of the report. While it scans,
// LVM 2.03.16 prints messages such as "Retrying metadata scan." to its standard output,
// before the report and inside it, each on its own line; every line of the report itself
// begins with a JSON character. The rest has to be valid JSON as a whole.
func document(b []byte) []byte {
	var out []byte
	for line := range strings.Lines(string(b)) {
		if text := strings.TrimLeft(line, " \t"); text != "" && strings.IndexByte(`{}[]",`, text[0]) >= 0 {
			out = append(out, line...)
		}
	}
	return out
}

// Parse reads the JSON of lvm fullreport. It ignores unknown fields. An invalid number is an
// error, because a partial report would be wrong.
func Parse(b []byte) (*Report, error) {
	text := document(b)
	sections, plain := plainReport(string(text))
	if !plain {
		var doc struct {
			Report []section `json:"report"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("LVM report: %w", err)
		}
		sections = doc.Report
	}
	if sections == nil {
		return nil, fmt.Errorf("LVM report: no member \"report\"")
	}
	out := &Report{}
	for _, s := range sections {
		if err := out.add(s); err != nil {
			return nil, fmt.Errorf("LVM report: %w", err)
		}
	}
	return out, nil
}

func (r *Report) add(s section) error {
	var n numbers
	var pvs []PV
	for _, x := range s.PV {
		pvs = append(pvs, n.pv(x))
	}
	if len(s.Group) > 1 {
		return fmt.Errorf("%d volume groups in one section", len(s.Group))
	}
	// Physical volumes without a group have a section of their own.
	if len(s.Group) == 0 || s.Group[0]["vg_name"] == "" {
		if len(s.LV) > 0 {
			return fmt.Errorf("%d logical volumes without a volume group", len(s.LV))
		}
		r.Free = append(r.Free, pvs...)
		return n.err
	}
	g := n.group(s.Group[0])
	g.PVs = pvs
	at := map[string]int{}
	for _, x := range s.LV {
		lv := n.lv(x)
		if _, twice := at[lv.UUID]; twice {
			continue
		}
		at[lv.UUID] = len(g.LVs)
		g.LVs = append(g.LVs, lv)
	}
	for _, x := range s.Segment {
		if i, ok := at[string(x["lv_uuid"])]; ok {
			lv := &g.LVs[i]
			lv.Segments = append(lv.Segments, n.segment(x))
			lv.Type = lv.Segments[0].Type
		}
	}
	for _, x := range s.Extent {
		if i, ok := at[string(x["lv_uuid"])]; ok && x["lv_uuid"] != "" {
			g.LVs[i].Extents = append(g.LVs[i].Extents,
				Allocation{PV: string(x["pv_uuid"]), Start: n.size(x, "pvseg_start"), Count: n.size(x, "pvseg_size")})
		}
	}
	r.Groups = append(r.Groups, g)
	if n.err != nil {
		return fmt.Errorf("volume group %s: %w", g.Name, n.err)
	}
	return nil
}

// numbers converts rows and keeps the first error.
type numbers struct{ err error }

func (n *numbers) size(r row, field string) uint64 {
	v := r[field]
	if v == "" || v == "-1" {
		return 0
	}
	x, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%s: %q is not a number", field, v)
	}
	return x
}

// percent reads what the kernel says of one volume. What is no percentage is unknown: it hides no other volume.
func percent(r row, field string) Percent {
	x, err := strconv.ParseFloat(string(r[field]), 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > 100 {
		return Percent{}
	}
	return Percent{Known: true, Value: x}
}

// device returns a kernel device number; -1 is that of a volume that is not active.
func (n *numbers) device(r row, field string) int {
	if v := r[field]; v == "" || v == "-1" {
		return -1
	}
	return int(min(n.size(r, field), math.MaxInt32))
}

func (n *numbers) group(r row) Group {
	return Group{
		UUID: string(r["vg_uuid"]), Name: string(r["vg_name"]),
		Size: n.size(r, "vg_size"), Free: n.size(r, "vg_free"), ExtentSize: n.size(r, "vg_extent_size"),
		FreeExtents: n.size(r, "vg_free_count"), MetadataFree: n.size(r, "vg_mda_free"), Seq: n.size(r, "vg_seqno"),
		SystemID: string(r["vg_systemid"]), Tags: list(r["vg_tags"]),
		Partial: set(r["vg_partial"]), AutoActivation: set(r["vg_autoactivation"]), Exported: set(r["vg_exported"]),
	}
}

func (n *numbers) pv(r row) PV {
	p := PV{
		UUID: string(r["pv_uuid"]), Device: string(r["pv_name"]), DeviceSize: n.size(r, "dev_size"),
		Size: n.size(r, "pv_size"), Free: n.size(r, "pv_free"), DataStart: n.size(r, "pe_start"),
		Missing: set(r["pv_missing"]), Allocatable: set(r["pv_allocatable"]), Duplicate: set(r["pv_duplicate"]), Tags: list(r["pv_tags"]),
		InUse: set(r["pv_in_use"]), NoMetadata: r["pv_mda_count"] == "0",
	}
	if strings.HasPrefix(p.Device, "[") || p.Device == "" { // "[unknown]"
		p.Device, p.Missing = "", true
	}
	return p
}

func (n *numbers) lv(r row) LV {
	lv := LV{
		UUID: string(r["lv_uuid"]), Name: name(r["lv_name"]), Parent: name(r["lv_parent"]), Attr: string(r["lv_attr"]),
		Layout: list(r["lv_layout"]), Role: list(r["lv_role"]), Size: n.size(r, "lv_size"),
		Origin: name(r["origin"]), Pool: name(r["pool_lv"]), Tags: list(r["lv_tags"]), Path: string(r["lv_path"]),
		Major: n.device(r, "lv_kernel_major"), Minor: n.device(r, "lv_kernel_minor"),
		Active: r["lv_active"] == "active", Suspended: r["lv_suspended"] == "suspended", Open: r["lv_device_open"] == "open",
		ReadOnly: strings.HasPrefix(string(r["lv_permissions"]), "read-only"), Health: string(r["lv_health_status"]),
		ErrorWhenFull: r["lv_when_full"] == "error", Data: percent(r, "data_percent"), Metadata: percent(r, "metadata_percent"),
		Sync: percent(r, "copy_percent"), SyncAction: string(r["raid_sync_action"]), Mismatches: n.size(r, "raid_mismatch_count"),
		MovesFrom: string(r["move_pv_uuid"]),
	}
	// LVM 2.03.16 calls a device without a table active (TestLabLVMNoTable). One that is suspended has its table, and one whose
	// table is not what the metadata say, which lv_attr shows as unknown as well (lib/metadata/lv.c).
	if live, told := r["lv_live_table"]; told && lv.Active && live != "live table present" && !lv.Suspended && !lv.Open {
		lv.Active, lv.NoTable = false, true
	}
	lv.Partial = lv.Health == "partial" || len(lv.Attr) > 8 && lv.Attr[8] == 'p'
	return lv
}

func (n *numbers) segment(r row) Segment {
	s := Segment{Type: string(r["segtype"]), Start: n.size(r, "seg_start_pe"), Count: n.size(r, "seg_size_pe"), Stripes: n.size(r, "stripes")}
	for _, d := range list(r["devices"]) { // "NAME(FIRST EXTENT)"
		d, _, _ = strings.Cut(d, "(")
		s.On = append(s.On, name(value(d)))
	}
	return s
}

// set reads a field that holds a word while it is true and is empty otherwise.
func set(v value) bool { return v != "" && v != "0" && v != "unknown" && v != "-1" }

// name removes the brackets that mark a hidden volume.
func name(v value) string { return strings.Trim(string(v), "[]") }

func list(v value) []string {
	if v == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(string(v), ","), func(s string) bool { return s == "" })
}
