package drivemgr

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// usableWWN keeps worldwide names that are worth the name: NAA, EUI, NGUID and
// UUID that are not all zero. The kernel makes up "nvme." and "t10." ones from
// serial and model when a drive has none.
func usableWWN(wwid string) string {
	kind, value, ok := strings.Cut(strings.ToLower(wwid), ".")
	if !ok || (kind != "naa" && kind != "eui" && kind != "uuid") || strings.Trim(value, "0-") == "" {
		return ""
	}
	return kind + "." + value
}

// junk are serials that makers of bridges and emulators give to every drive.
var junk = regexp.MustCompile(`(?i)^(0*|1234567890?|0*123456789(abcdef)?0*|0123456789abcdef|f+|deadbeef|none|unknown|n/?a|to be filled.*|serial ?number|default( string)?)$`)

// usableSerial says why a serial cannot tell two drives apart, or nothing.
func usableSerial(serial string) (why string) {
	switch {
	case serial == "":
		return "it has no serial"
	case junk.MatchString(serial) || strings.Trim(serial, serial[:1]) == "":
		return fmt.Sprintf("its serial %q is one that many drives carry", serial)
	case strings.ContainsRune(serial, '\uFFFD'):
		return fmt.Sprintf("its serial %q is no text", serial)
	}
	return ""
}

// baseID is the id that a drive earns by itself, and what is wrong with it.
func baseID(d *drivebay.Drive) (id, issue string) {
	if d.WWN != "" {
		return slug(strings.Replace(d.WWN, ".", "-", 1)), ""
	}
	why := usableSerial(d.Serial)
	if why == "" {
		return "sn-" + strings.TrimPrefix(slug(d.Vendor+" "+d.Model)+"-", "-") + exactSlug(d.Serial), ""
	}
	return "path-" + slug(placeOf(d)), "no worldwide name, and " + why + ": it is known by its place only"
}

// placeOf is where the machine has the drive; it outlives a reboot as long as
// nobody moves cables. Numbers that the kernel hands out anew are left out.
func placeOf(d *drivebay.Drive) string {
	if len(d.Paths) == 0 || d.Paths[0].SysPath == "" {
		return d.Name
	}
	p := strings.TrimPrefix(d.Paths[0].SysPath, "sys/devices/")
	p = handedOut.ReplaceAllString(p, "")
	return strings.TrimPrefix(p, "virtual/")
}

var handedOut = regexp.MustCompile(`/(block|host\d+|virtio\d+|nvme|sd[a-z]+|target[0-9:]+)`)

// identify gives every drive its id. Drives that would share one are told apart
// by their place, and each says which others claim to be it.
func identify(drives []drivebay.Drive) {
	claims := map[string][]int{}
	for i := range drives {
		d := &drives[i]
		d.ID, d.IdentityIssue = baseID(d)
		claims[d.ID] = append(claims[d.ID], i)
	}
	for id, who := range claims {
		if len(who) == 1 {
			continue
		}
		for _, i := range who {
			d := &drives[i]
			d.ID = fmt.Sprintf("%s-at-%s", id, hash(placeOf(d)))
			d.IdentityIssue = fmt.Sprintf("serial %q and worldwide name %q are also those of %s", d.Serial, d.WWN, others(drives, who, i))
		}
	}
	sharedSerials(drives)
}

// sharedSerials reports drives with worldwide names of their own and one serial.
func sharedSerials(drives []drivebay.Drive) {
	bySerial := map[string][]int{}
	for i := range drives {
		if d := &drives[i]; usableSerial(d.Serial) == "" {
			key := d.Vendor + "\x00" + d.Model + "\x00" + d.Serial
			bySerial[key] = append(bySerial[key], i)
		}
	}
	for _, who := range bySerial {
		for _, i := range who {
			if len(who) > 1 && drives[i].IdentityIssue == "" {
				drives[i].IdentityIssue = fmt.Sprintf("serial %q is also that of %s", drives[i].Serial, others(drives, who, i))
			}
		}
	}
}

func others(drives []drivebay.Drive, who []int, me int) string {
	var names []string
	for _, i := range who {
		if i == me {
			continue
		}
		name := drives[i].Name
		if drives[i].Slot.Bay != "" {
			name += " in bay " + drives[i].Slot.Bay
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes a legal DNS-1123 name of a text; two texts may share one.
func slug(s string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// exactSlug is a slug that no two texts share: where letters or signs are lost, a
// hash of the whole stands for them.
func exactSlug(s string) string {
	id := slug(s)
	if strings.ToUpper(id) == s {
		return id
	}
	return id + "-" + hash(s)
}

func hash(s string) string {
	h := fnv.New32a()
	h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}

// joinPaths makes one drive of the several block devices that a drive with more
// than one port has. Only wires that have ports do that, and only when name,
// serial, model and size agree and no two bays are involved.
func joinPaths(drives []drivebay.Drive) []drivebay.Drive {
	first := map[string]int{}
	out := drives[:0:0]
	for _, d := range drives {
		key, ok := portKey(&d)
		at, seen := first[key]
		if ok && seen && place(&out[at]) == place(&d) {
			out[at].Paths = append(out[at].Paths, d.Paths...)
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
	if !multi || d.WWN == "" || usableSerial(d.Serial) != "" {
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

var nvmePath = regexp.MustCompile(`^nvme(\d+)c(\d+)n(\d+)$`)

// joinNVMePaths gives an NVMe head its hidden paths (nvme0c1n1 is a way to
// nvme0n1 through controller nvme1, Documentation/admin-guide/nvme-multipath.rst),
// and the state of the best of them.
func joinNVMePaths(s *sysfs, drives []drivebay.Drive, names []string) []drivebay.Drive {
	byHead := map[string][]drivebay.Path{}
	for _, name := range names {
		m := nvmePath.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		ctrl := "sys/class/nvme/nvme" + m[2]
		path, err := s.Resolve(s.blockDir + "/" + name)
		if err != nil {
			continue
		}
		head := "nvme" + m[1] + "n" + m[3]
		byHead[head] = append(byHead[head], drivebay.Path{Name: name, DevNum: s.text(path + "/dev"), SysPath: path, State: s.text(ctrl + "/state"), Address: s.text(ctrl + "/address")})
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
