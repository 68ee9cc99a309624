package inventory

import (
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
	"github.com/drivebay/drivebay/internal/host"
)

// Options holds what counts as a drive and how much a listing reads.
type Options struct {
	Loop bool // loop devices count as drives
	// KeptLoops holds the serials of loop devices that count as drives also without Loop: they are claimed, or have volumes. Such a
	// drive would otherwise count as gone, and its volumes as missing, while they are mounted.
	KeptLoops map[string]bool
	// SkipEnclosures leaves out the lights of enclosures and the status of their bays: each read
	// is a command to the enclosure (drivers/scsi/ses.c, ses_get_locate and
	// ses_get_status), and a big enclosure has a hundred bays.
	SkipEnclosures bool
	// Ours holds the kernel names of drives on which only drivebay content was read.
	// Partitions on them that the kernel has no name for count as drivebay's.
	Ours map[string]bool
}

// Listing holds the drives of a machine at one moment, as the kernel lists them.
type Listing struct {
	Drives []drivebay.Drive
	Bays   []drivebay.Bay
	// Complete is false when part of the list could not be read: a drive that is
	// missing in it may still be present.
	Complete          bool
	EnclosuresSkipped bool // lights and status of enclosures were not read
	Problems          []string
	Began             uint64 // number from Manager.moment
}

// Observe lists the drives of a machine. It reads sysfs and the udev database and opens
// no device.
func Observe(files host.Files, mounts []host.Mount, opt Options) Listing {
	s := &sysfs.Reader{Files: files}
	names, err := s.BlockDevices()
	if err != nil {
		return Listing{Problems: []string{"list of block devices: read failed: " + err.Error()}}
	}
	s.RemovesUevents = !isRecording(files) && slices.ContainsFunc(names, func(name string) bool { return !s.Lacks(s.BlockDir + "/" + name + "/uevent") })
	places := readPlaces(s, opt.SkipEnclosures)
	uses := readUses(s, names, mounts)
	uses.ours = opt.Ours
	var drives []drivebay.Drive
	for _, name := range names {
		if !mayBeDrive(name, opt) {
			continue
		}
		if d, ok := readDrive(s, name); ok && (opt.Loop || !isLoop(name) || opt.KeptLoops[d.Serial]) {
			uses.addUses(&d)
			drives = append(drives, d)
		}
	}
	drives = joinNVMePaths(s, drives, names)
	numa := numaNodes{s, map[string]*int{}}
	for i := range drives {
		places.setBay(&drives[i])
		drives[i].NUMANode = numa.of(drives[i].Paths[0].SysPath)
	}
	// The last question about a drive: one that left meanwhile may have been read without its bay.
	drives = slices.DeleteFunc(drives, func(d drivebay.Drive) bool { return s.BeingRemoved(d.Disks[0].SysPath) })
	drives = joinPaths(drives)
	identity.Assign(drives)
	return Listing{Drives: drives, Bays: places.bays, Complete: len(s.Lost) == 0, EnclosuresSkipped: opt.SkipEnclosures, Problems: s.Problems()}
}

// isRecording reports whether the files are a copy: it may lack files, and the kernel removes none
// of it.
func isRecording(files host.Files) bool {
	m, ok := files.(interface{ Describe() host.Description })
	return ok && m.Describe().Kind == "recorded"
}

// notDrives matches block devices that are not drives.
var notDrives = regexp.MustCompile(`^(dm-|md|zram|ram|sr|fd|nbd|rbd|drbd|bcache|zd|nullb|ublkb|mtdblock|pmem|mmcblk\d+(boot\d+|rpmb|gp\d+)|nvme\d+c\d+n\d+)`)

func isLoop(name string) bool { return strings.HasPrefix(name, "loop") }

func mayBeDrive(name string, opt Options) bool {
	if isLoop(name) {
		return opt.Loop || len(opt.KeptLoops) > 0
	}
	return !notDrives.MatchString(name)
}

// transports finds the transport by the sysfs path of a device; the first match counts.
// A path names every bus above the device, so the more specific patterns come first.
var transports = []struct {
	path *regexp.Regexp
	is   drivebay.Transport
}{
	{regexp.MustCompile(`/usb\d+/`), drivebay.TransportUSB},
	{regexp.MustCompile(`/nvme`), drivebay.TransportNVMe},
	{regexp.MustCompile(`/ata\d+/`), drivebay.TransportSATA},
	{regexp.MustCompile(`/rport-`), drivebay.TransportFC},
	{regexp.MustCompile(`/(end_device|expander|port)-\d+:`), drivebay.TransportSAS},
	{regexp.MustCompile(`/mmc\d+:|/mmcblk\d+$`), drivebay.TransportMMC},
	{regexp.MustCompile(`/loop\d+$`), drivebay.TransportLoop},
	{regexp.MustCompile(`/virtio\d+/block/|/vd[a-z]+$`), drivebay.TransportVirtio},
	{regexp.MustCompile(`/target\d+:|/sd[a-z]+$`), drivebay.TransportSCSI},
}

// ReadDrive reads one block device. It returns false for a device that vanished, is being
// removed, is hidden, has no medium, or is a SCSI device of another type.
func ReadDrive(s *sysfs.Reader, name string) (drivebay.Drive, bool) {
	d, ok := readDrive(s, name)
	return d, ok && !s.BeingRemoved(d.Disks[0].SysPath)
}

// readDrive is ReadDrive for a caller that asks last whether the device is being removed.
func readDrive(s *sysfs.Reader, name string) (drivebay.Drive, bool) {
	dir := s.BlockDir + "/" + name
	path, err := s.Resolve(dir)
	if err != nil {
		path = dir
	}
	d := drivebay.Drive{Name: name, Status: drivebay.StatusOnline, Content: drivebay.Content{Reason: drivebay.NotRead}}
	sectors, ok := s.Size(path)
	if !ok && s.Exists(dir) { // present but not readable: the drive is not gone
		s.Lost = append(s.Lost, name)
	}
	if !ok || (strings.HasPrefix(name, "nvme") && s.Text(path+"/hidden") == "1") {
		return d, false
	}
	d.Removable = s.Text(path+"/removable") == "1"
	if sectors == 0 && (d.Removable || isLoop(name)) { // a card reader without a card, a loop device without a file
		return d, false
	}
	d.Size = sectors * 512 // always in 512-byte units, whatever the drive's block is (block/genhd.c)
	d.LogicalBlock = s.Small(path + "/queue/logical_block_size")
	d.PhysBlock = s.Small(path + "/queue/physical_block_size")
	d.ReadOnly = s.Text(path+"/ro") == "1"
	d.Transport = transportOf(path)
	d.Paths = []drivebay.Path{{Name: name, Dev: "/dev/" + name, DevNum: s.Text(path + "/dev"), SysPath: path}}
	d.Disks = []drivebay.DiskIdentity{{DevNum: d.Paths[0].DevNum, SysPath: path, Seq: host.DiskSeq(s.Files, path)}}
	if family := familyOf(name, s, path); family != nil && !family(s, path, &d) {
		return d, false
	}
	udev := s.Udev(d.Paths[0].DevNum)
	udev.Complete(&d)
	udev.Content(&d)
	return d, true
}

func transportOf(path string) drivebay.Transport {
	for _, t := range transports {
		if t.path.MatchString(path) {
			return t.is
		}
	}
	return drivebay.TransportUnknown
}

// familyOf returns the reader for the attributes of this kind of device.
func familyOf(name string, s *sysfs.Reader, path string) func(*sysfs.Reader, string, *drivebay.Drive) bool {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return readNVMe
	case strings.HasPrefix(name, "mmcblk"):
		return readMMC
	case isLoop(name):
		return readLoop
	case strings.HasPrefix(name, "sd"):
		return readSCSI
	}
	return readVirtio
}

func readNVMe(s *sysfs.Reader, path string, d *drivebay.Drive) bool {
	d.Type, d.Transport, d.Protocol = drivebay.TypeNVMe, drivebay.TransportNVMe, drivebay.ProtocolNVMe
	dev := path + "/device" // the controller, or the subsystem when the kernel does multipath
	if !s.Exists(dev) {
		dev = path[:strings.LastIndex(path, "/")]
	}
	d.Model, d.Serial, d.Firmware = s.Text(dev+"/model"), s.Text(dev+"/serial"), s.Text(dev+"/firmware_rev")
	d.WWN, d.Namespace = s.NvmeWWN(path), s.Text(path+"/nsid")
	at := &d.Paths[0]
	at.State, at.Address = s.Text(dev+"/state"), s.Text(dev+"/address")
	return true
}

func readMMC(s *sysfs.Reader, path string, d *drivebay.Drive) bool {
	dev := path + "/device"
	d.Type, d.Transport = drivebay.TypeSSD, drivebay.TransportMMC
	d.Model, d.Serial, d.Firmware = s.Text(dev+"/name"), s.Text(dev+"/serial"), s.Text(dev+"/fwrev")
	return true
}

// readLoop identifies a loop device by its file, whatever number the device has
// (drivers/block/loop.c, backing_file).
func readLoop(s *sysfs.Reader, path string, d *drivebay.Drive) bool {
	d.Model, d.Serial = "loop", s.Text(path+"/loop/backing_file")
	return true
}

// readVirtio also reads disks of other hypervisors. Their "rotational" does not show
// the real medium: it is 1 by default. The type stays unknown, so that the rules for
// hard disks do not apply to them.
func readVirtio(s *sysfs.Reader, path string, d *drivebay.Drive) bool {
	d.Serial = s.Text(path + "/serial")
	return true
}
