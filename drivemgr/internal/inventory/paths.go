package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// joinPaths joins the block devices of a drive with more than one port into one drive.
// It does so only on transports with ports (or under multipath), and only when name,
// serial, model and size agree and the bays do not differ.
func joinPaths(drives []drivebay.Drive) []drivebay.Drive {
	first := map[string]int{}
	out := drives[:0:0]
	for _, d := range drives {
		key, ok := portKey(&d)
		at, seen := first[key]
		if ok && seen && (Place(&out[at]) == Place(&d) || Place(&out[at]) == "" || Place(&d) == "") {
			if out[at].Slot.Bay == "" {
				out[at].Slot = d.Slot // one path may know the bay and the other not
			}
			out[at].Paths = append(out[at].Paths, d.Paths...)
			out[at].Disks = append(out[at].Disks, d.Disks...)
			out[at].Uses = mergeUses(out[at].Uses, d.Uses)
			out[at].System = out[at].System || d.System
			continue
		}
		if ok && !seen {
			first[key] = len(out)
		}
		out = append(out, d)
	}
	return out
}

func portKey(d *drivebay.Drive) (string, bool) {
	multi := d.Transport == drivebay.TransportSAS || d.Transport == drivebay.TransportFC || slices.ContainsFunc(d.Uses, func(u drivebay.Use) bool { return u.Kind == "multipath" })
	if !multi || d.WWN == "" || identity.UsableSerial(d.Serial) != "" {
		return "", false
	}
	return fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%d", d.WWN, d.Serial, d.Vendor, d.Model, d.Size), true
}

func mergeUses(a, b []drivebay.Use) []drivebay.Use {
	for _, u := range b {
		if !slices.Contains(a, u) {
			a = append(a, u)
		}
	}
	return a
}

// joinNVMePaths gives an NVMe head its hidden paths and their states (nvme0c1n1 is a
// path to nvme0n1 through controller nvme1,
// Documentation/admin-guide/nvme-multipath.rst).
func joinNVMePaths(s *sysfs.Reader, drives []drivebay.Drive, names []string) []drivebay.Drive {
	byHead := map[string][]drivebay.Path{}
	for _, name := range names {
		m := sysfs.NVMePath.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		ctrl := "sys/class/nvme/nvme" + m[2]
		dir, err := s.Resolve(s.BlockDir + "/" + name)
		if err != nil {
			continue
		}
		head := "nvme" + m[1] + "n" + m[3]
		byHead[head] = append(byHead[head], drivebay.Path{Name: name, DevNum: s.Text(dir + "/dev"), SysPath: dir, State: s.Text(ctrl + "/state"), Address: s.Text(ctrl + "/address")})
	}
	for i := range drives {
		d := &drives[i]
		ways := byHead[d.Name]
		if len(ways) == 0 {
			continue
		}
		slices.SortFunc(ways, func(a, b drivebay.Path) int { return cmp.Compare(a.Name, b.Name) })
		d.Paths = ways
	}
	return drives
}

// Place returns the name of the bay of a drive, unique within the machine; "" without a bay.
func Place(d *drivebay.Drive) string {
	if d.Slot.Bay == "" {
		return ""
	}
	return d.Slot.Enclosure + "/" + d.Slot.Bay
}
