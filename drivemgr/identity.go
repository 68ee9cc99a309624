package drivemgr

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// usableWWN keeps worldwide names that are worth the name: NAA, EUI, NGUID and
// UUID with something in them. The kernel makes up "nvme." and "t10." ones from
// serial and model when a drive has none; bridges send all zeros or all ones,
// or a format digit and nothing after it.
func usableWWN(wwid string) string {
	wwid = strings.ToLower(wwid)
	m := worldwide.FindStringSubmatch(wwid)
	if m == nil || strings.Trim(m[2], "0-") == "" || strings.Trim(m[2], "f-") == "" || (m[1] == "naa" && strings.Trim(m[2][1:], "0") == "") {
		return ""
	}
	return wwid
}

var worldwide = regexp.MustCompile(`^(naa|eui|uuid)\.([0-9a-f-]{8,64})$`)

// junk are serials that makers of bridges and emulators give to every drive.
var junk = regexp.MustCompile(`(?i)^(0*|1234567890?|0*123456789(abcdef)?0*|0123456789abcdef|0{8,}\d{1,2}|f+|deadbeef|none|unknown|n/?a|to be filled.*|serial ?number|default( string)?)$`)

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
	if kind, value, ok := strings.Cut(d.WWN, "."); ok {
		if kind == "eui" && len(value) == 32 && d.Protocol == drivebay.ProtocolNVMe {
			kind = "nguid" // the kernel writes both as "eui."
		}
		return bounded(kind + "-" + value), ""
	}
	why := usableSerial(d.Serial)
	if why == "" {
		words := []string{"sn", slug(d.Vendor), slug(shortModel(d.Model)), exactSlug(d.Serial), unitOfSeveral(d)}
		return bounded(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "-")), ""
	}
	return bounded("path-" + slug(placeOf(d))), "no worldwide name, and " + why + ": it is known by its place only"
}

// shortModel is as much of a model as every source has: sysfs keeps 16 characters
// of an ATA drive's, and the id must be the same with and without a udev database.
func shortModel(model string) string {
	r := []rune(model)
	return string(r[:min(16, len(r))])
}

var unit = regexp.MustCompile(`^nvme\d+n(\d+)$`)

// namespaceOf is the number that the drive itself gives to a namespace. That in
// the kernel's name is another one while somebody still has the first open that
// was pulled: the drive then comes back as nvme0n2 (Linux 6.1, tried).
func namespaceOf(d *drivebay.Drive) string {
	if m := unit.FindStringSubmatch(d.Name); m != nil && d.Namespace == "" {
		return m[1]
	}
	return d.Namespace
}

// unitOfSeveral tells the namespaces of an NVMe drive and the slots of a card
// reader apart: they carry the one serial of the whole. The first needs no word.
func unitOfSeveral(d *drivebay.Drive) string {
	n := ""
	if ns := namespaceOf(d); ns != "" && ns != "1" {
		n = "n" + ns
	}
	if len(d.Paths) > 0 && d.Transport == drivebay.TransportUSB {
		if at := d.Paths[0].Address; strings.Contains(at, ":") && !strings.HasSuffix(at, ":0") {
			n = "lun" + at[strings.LastIndex(at, ":")+1:]
		}
	}
	return n
}

// bounded keeps an id a name, and short enough for something to be added to it:
// 253 characters is the most (RFC 1123).
func bounded(id string) string {
	const most = 200
	if id = strings.Trim(id, "-"); len(id) <= most {
		return id
	}
	return strings.Trim(id[:most], "-") + "-" + hash(id)
}

// placeOf is where the machine has the drive; it outlives a reboot as long as
// nobody moves cables. Numbers that the kernel hands out anew are left out, and
// so is the kernel name but for the namespace in it.
func placeOf(d *drivebay.Drive) string {
	if len(d.Paths) == 0 || !strings.HasPrefix(d.Paths[0].SysPath, "sys/devices/") {
		return d.Name
	}
	dir, name := path.Split(strings.TrimPrefix(d.Paths[0].SysPath, "sys/devices/"))
	parts := strings.Split(dir, "/")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || handedOut.MatchString(p) })
	for i, p := range parts {
		parts[i] = hostNumber.ReplaceAllString(p, "$1$2$3")
	}
	if len(parts) == 0 {
		return name
	}
	last := namespace.FindString(name)
	if d.Namespace != "" {
		last = "n" + d.Namespace
	}
	return strings.Join(append(parts, last), "/")
}

var (
	handedOut  = regexp.MustCompile(`^(virtual|block|scsi|nvme|host\d+|virtio\d+|nvme\d+|nvme-subsys\d+|nvme-subsystem|target[0-9:]+)$`)
	hostNumber = regexp.MustCompile(`^(?:(port-|expander-|end_device-|rport-)\d+:([0-9:-]+)|\d+:(\d+:\d+:\d+))$`)
	namespace  = regexp.MustCompile(`n\d+$`)
)

// identify gives every drive its id. Drives that would share one are told apart
// by their place, and each says which others claim to be it.
func identify(drives []drivebay.Drive) {
	claims := map[string][]int{}
	for i := range drives {
		d := &drives[i]
		d.ID, d.IdentityIssue = baseID(d)
		claims[d.ID] = append(claims[d.ID], i)
	}
	taken := map[string]bool{}
	for id := range claims {
		taken[id] = true
	}
	for i := range drives {
		d := &drives[i]
		who := claims[d.ID]
		if len(who) == 1 {
			continue
		}
		at := d.ID + "-at-" + hash(placeOf(d))
		d.ID = at
		for n := 2; taken[d.ID]; n++ { // two at one place: only the kernel's order tells them apart
			d.ID = fmt.Sprintf("%s-%d", at, n)
		}
		taken[d.ID] = true
		d.IdentityIssue = fmt.Sprintf("serial %q and worldwide name %q are also those of %s", d.Serial, d.WWN, others(drives, who, i))
	}
	sharedSerials(drives)
}

// sharedSerials reports drives with worldwide names of their own and one serial.
// The namespaces of a controller and the units of a target share theirs rightly.
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
			strangers := slices.DeleteFunc(slices.Clone(who), func(o int) bool { return o != i && deviceOf(&drives[o]) == deviceOf(&drives[i]) })
			if len(strangers) > 1 && drives[i].IdentityIssue == "" {
				drives[i].IdentityIssue = fmt.Sprintf("serial %q is also that of %s", drives[i].Serial, others(drives, strangers, i))
			}
		}
	}
}

// deviceOf is the folder of the SCSI target or NVMe controller that a drive is a
// unit of, its own where it is none.
func deviceOf(d *drivebay.Drive) string {
	if len(d.Paths) == 0 {
		return d.Name
	}
	if dir := unitOf.FindString(d.Paths[0].SysPath); dir != "" {
		return dir
	}
	return d.Paths[0].SysPath
}

var unitOf = regexp.MustCompile(`^.*/(target[0-9:]+|nvme\d+|nvme-subsys\d+)/`)

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
		if ok && seen && (place(&out[at]) == place(&d) || place(&out[at]) == "" || place(&d) == "") {
			if out[at].Slot.Bay == "" {
				out[at].Slot = d.Slot // one of the ways may know the bay and not the other
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
		dir, err := s.Resolve(s.blockDir + "/" + name)
		if err != nil {
			continue
		}
		head := "nvme" + m[1] + "n" + m[3]
		byHead[head] = append(byHead[head], drivebay.Path{Name: name, DevNum: s.text(dir + "/dev"), SysPath: dir, State: s.text(ctrl + "/state"), Address: s.text(ctrl + "/address")})
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
