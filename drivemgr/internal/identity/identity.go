package identity

import (
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// placeholderSerial matches serials that makers of bridges and emulators give to every drive.
var placeholderSerial = regexp.MustCompile(`(?i)^(0*|1234567890?|0*123456789(abcdef)?0*|0123456789abcdef|0{8,}\d{1,2}|f+|deadbeef|none|unknown|n/?a|to be filled.*|serial ?number|default( string)?)$`)

// UsableSerial returns why a serial cannot identify a drive, "" if it can.
func UsableSerial(serial string) (why string) {
	switch {
	case serial == "":
		return "the drive has no serial"
	case placeholderSerial.MatchString(serial) || strings.Trim(serial, serial[:1]) == "":
		return fmt.Sprintf("the serial %q is a placeholder", serial)
	case strings.ContainsRune(serial, '\uFFFD'):
		return fmt.Sprintf("the serial %q is not valid text", serial)
	}
	return ""
}

// Base returns the id that follows from the drive's own names, and what is wrong with it.
func Base(d *drivebay.Drive) (id, issue string) {
	if kind, value, ok := strings.Cut(d.WWN, "."); ok {
		if kind == "eui" && len(value) == 32 && d.Protocol == drivebay.ProtocolNVMe {
			kind = "nguid" // the kernel writes "eui." for both
		}
		return bounded(kind + "-" + value), ""
	}
	why := UsableSerial(d.Serial)
	if why == "" {
		words := []string{"sn", slug(d.Vendor), slug(shortModel(d.Model)), exactSlug(d.Serial), unitOfSeveral(d)}
		return bounded(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "-")), ""
	}
	return bounded("path-" + slug(PlaceOf(d))), "the drive has no world-wide name, and " + why + ": only its place identifies it"
}

// shortModel cuts a model to what every source has: sysfs keeps 16 characters of an
// ATA model, and the id must be the same with and without a udev database.
func shortModel(model string) string {
	r := []rune(model)
	return string(r[:min(16, len(r))])
}

var unit = regexp.MustCompile(`^nvme\d+n(\d+)$`)

// namespaceOf returns the number that the NVMe drive itself gives to a namespace. The
// number in the kernel's name differs while a process has the old device of a pulled
// drive open: the drive then comes back as nvme0n2 (Linux 6.1, tried).
func namespaceOf(d *drivebay.Drive) string {
	if m := unit.FindStringSubmatch(d.Name); m != nil && d.Namespace == "" {
		return m[1]
	}
	return d.Namespace
}

// unitOfSeveral returns a suffix for the namespaces of an NVMe drive and the slots of a
// card reader, which share one serial. The first unit needs none.
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

// bounded keeps an id a valid name and leaves room for a suffix: a name has at most 253
// characters (RFC 1123).
func bounded(id string) string {
	const most = 200
	if id = strings.Trim(id, "-"); len(id) <= most {
		return id
	}
	return strings.Trim(id[:most], "-") + "-" + Hash(id)
}

// PlaceOf returns the place of a drive in the machine. The place stays the same after a reboot if
// the cables stay. It contains no numbers that the kernel assigns at each boot, and of the kernel
// name only the namespace.
func PlaceOf(d *drivebay.Drive) string {
	if len(d.Paths) == 0 || !strings.HasPrefix(d.Paths[0].SysPath, "sys/devices/") {
		return d.Name
	}
	dir, name := path.Split(strings.TrimPrefix(d.Paths[0].SysPath, "sys/devices/"))
	parts := strings.Split(dir, "/")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || unstableNames.MatchString(p) })
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
	unstableNames = regexp.MustCompile(`^(virtual|block|scsi|nvme|host\d+|virtio\d+|nvme\d+|nvme-subsys\d+|nvme-subsystem|target[0-9:]+)$`)
	hostNumber    = regexp.MustCompile(`^(?:(port-|expander-|end_device-|rport-)\d+:([0-9:-]+)|\d+:(\d+:\d+:\d+))$`)
	namespace     = regexp.MustCompile(`n\d+$`)
)

// Assign gives every drive its id. Drives with equal names get ids by their place,
// and an IdentityIssue that names the others.
func Assign(drives []drivebay.Drive) {
	claims := map[string][]int{}
	for i := range drives {
		d := &drives[i]
		d.ID, d.IdentityIssue = Base(d)
		claims[d.ID] = append(claims[d.ID], i)
	}
	taken := map[string]bool{}
	for id := range claims {
		taken[id] = true
	}
	for i := range drives {
		d := &drives[i]
		holders := claims[d.ID]
		if len(holders) == 1 {
			continue
		}
		at := d.ID + "-at-" + Hash(PlaceOf(d))
		d.ID = at
		for n := 2; taken[d.ID]; n++ { // two drives at one place: only the kernel's order separates them
			d.ID = fmt.Sprintf("%s-%d", at, n)
		}
		taken[d.ID] = true
		d.IdentityIssue = fmt.Sprintf("serial %q and world-wide name %q are the same as those of %s", d.Serial, d.WWN, others(drives, holders, i))
	}
	sharedSerials(drives)
}

// sharedSerials reports different drives with different worldwide names and one serial.
// The namespaces of a controller and the units of a target may share their serial.
func sharedSerials(drives []drivebay.Drive) {
	bySerial := map[string][]int{}
	for i := range drives {
		if d := &drives[i]; UsableSerial(d.Serial) == "" {
			key := d.Vendor + "\x00" + d.Model + "\x00" + d.Serial
			bySerial[key] = append(bySerial[key], i)
		}
	}
	for _, holders := range bySerial {
		for _, i := range holders {
			unrelated := slices.DeleteFunc(slices.Clone(holders), func(o int) bool { return o != i && deviceOf(&drives[o]) == deviceOf(&drives[i]) })
			if len(unrelated) > 1 && drives[i].IdentityIssue == "" {
				drives[i].IdentityIssue = fmt.Sprintf("serial %q is the same as that of %s", drives[i].Serial, others(drives, unrelated, i))
			}
		}
	}
}

// deviceOf returns the sysfs folder of the SCSI target or NVMe controller of a drive,
// or the folder of the drive itself.
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

func others(drives []drivebay.Drive, holders []int, me int) string {
	var names []string
	for _, i := range holders {
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

// slug makes a DNS-1123 name of a text; two texts may get the same one.
func slug(s string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// exactSlug is a slug that is unique to its text: where characters are lost, it adds a
// hash of the whole text.
func exactSlug(s string) string {
	id := slug(s)
	if strings.ToUpper(id) == s {
		return id
	}
	return id + "-" + Hash(s)
}

// Hash returns eight hexadecimal digits that stand for a text in an id.
func Hash(s string) string {
	h := fnv.New32a()
	h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}
