package drivemgr

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// InventoryOptions say what counts as a drive where opinions differ.
type InventoryOptions struct {
	Loop bool // loop devices count as drives
	// Dark leaves the lights of enclosures and the status of their bays unread: each
	// reading is a command to the enclosure (drivers/scsi/ses.c, ses_get_locate and
	// ses_get_status), and a big one has a hundred bays.
	Dark bool
	// Ours are the kernel names of drives that were read and hold nothing but ours:
	// whose partitions are, that have no name in the kernel, it knows from there.
	Ours map[string]bool
}

// Listing is the drives of a machine at one moment, as the kernel tells them.
type Listing struct {
	Drives []drivebay.Drive
	Bays   []drivebay.Bay
	// Complete is false when the list itself could not be read; what is in it is
	// true, what is not in it may be there all the same.
	Complete bool
	Dark     bool // enclosures were not asked for lights and status
	Problems []string
	began    uint64 // see Manager.moment
}

// Observe lists the drives of a machine. It reads sysfs and the udev database
// and opens no device.
func Observe(files host.Files, mounts []host.Mount, opt InventoryOptions) Listing {
	s := &sysfs{Files: files}
	names, err := s.blockDevices()
	if err != nil {
		return Listing{Problems: []string{"the list of block devices cannot be read: " + err.Error()}}
	}
	s.tells = slices.ContainsFunc(names, func(name string) bool { return !s.lacks(s.blockDir + "/" + name + "/uevent") })
	places := readPlaces(s, opt.Dark)
	uses := readUses(s, names, mounts)
	uses.ours = opt.Ours
	var drives []drivebay.Drive
	for _, name := range names {
		if !mayBeDrive(name, opt) {
			continue
		}
		if d, ok := s.readDrive(name); ok {
			uses.give(&d)
			drives = append(drives, d)
		}
	}
	drives = joinNVMePaths(s, drives, names)
	for i := range drives {
		places.give(&drives[i])
	}
	drives = joinPaths(drives)
	identify(drives)
	return Listing{Drives: drives, Bays: places.bays, Complete: len(s.lost) == 0, Dark: opt.Dark, Problems: s.problems()}
}

// never are block devices that stand for something else than a drive.
var never = regexp.MustCompile(`^(dm-|md|zram|ram|sr|fd|nbd|rbd|drbd|bcache|zd|nullb|ublkb|mtdblock|pmem|mmcblk\d+(boot\d+|rpmb|gp\d+)|nvme\d+c\d+n\d+)`)

func mayBeDrive(name string, opt InventoryOptions) bool {
	if strings.HasPrefix(name, "loop") {
		return opt.Loop
	}
	return !never.MatchString(name)
}

// transports tells the wire from the device's place in the tree; the first that
// fits is it. A path names every bus on the way, so the order is from the more
// telling to the less.
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

// readDrive reads one block device. It is no drive when it went away meanwhile, or
// is going, is hidden, holds no medium, or is a SCSI device of another kind.
func (s *sysfs) readDrive(name string) (drivebay.Drive, bool) {
	dir := s.blockDir + "/" + name
	path, err := s.Resolve(dir)
	if err != nil {
		path = dir
	}
	d := drivebay.Drive{Name: name, Status: drivebay.StatusOnline, Content: drivebay.Content{Reason: drivebay.NotRead}}
	sectors, ok := s.size(path)
	if !ok && s.exists(dir) { // it is there and cannot be read: that is no absent drive
		s.lost = append(s.lost, name)
	}
	if !ok || (strings.HasPrefix(name, "nvme") && s.text(path+"/hidden") == "1") {
		return d, false
	}
	d.Removable = s.text(path+"/removable") == "1"
	if sectors == 0 && (d.Removable || strings.HasPrefix(name, "loop")) { // a card reader without a card, a loop device without a file
		return d, false
	}
	d.Size = sectors * 512 // always in 512-byte units, whatever the drive's block is (block/genhd.c)
	d.LogicalBlock = s.small(path + "/queue/logical_block_size")
	d.PhysBlock = s.small(path + "/queue/physical_block_size")
	d.ReadOnly = s.text(path+"/ro") == "1"
	d.Transport = transportOf(path)
	d.Paths = []drivebay.Path{{Name: name, Dev: "/dev/" + name, DevNum: s.text(path + "/dev"), SysPath: path}}
	d.Disks = []drivebay.Disk{{DevNum: d.Paths[0].DevNum, SysPath: path, Seq: s.diskSeq(path)}}
	if family := familyOf(name, s, path); family != nil && !family(s, path, &d) {
		return d, false
	}
	udev := s.udev(d.Paths[0].DevNum)
	udev.complete(&d)
	udev.content(&d)
	return d, !s.going(path)
}

// going says that the kernel is taking a device away: then half of what was read of
// it may be missing, and what is left would look like another drive. The kernel takes
// the file "uevent" before it takes the other attributes, of the device and of what
// is above it (drivers/base/core.c, device_del; seen with a USB disk on Linux 6.1,
// which had its serial number still and no model any more).
func (s *sysfs) going(path string) bool {
	return s.tells && (s.lacks(path+"/uevent") || s.exists(path+"/device") && s.lacks(path+"/device/uevent"))
}

// lacks says that a file is not there; one that cannot be read is.
func (s *sysfs) lacks(name string) bool {
	_, err := s.ReadFile(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrGone)
}

// size is in sectors, 0 where a copy of a machine has lost it but not the drive.
func (s *sysfs) size(path string) (uint64, bool) {
	b, err := s.ReadFile(path + "/size")
	s.note(path+"/size", err)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.exists(path)
	}
	n, bad := strconv.ParseUint(clean(string(b)), 10, 54) // times 512 is still a number
	return n, err == nil && bad == nil
}

// diskSeq names a disk among all of all boots; "" where the kernel does not say.
func (s *sysfs) diskSeq(path string) string {
	boot, seq := s.text("proc/sys/kernel/random/boot_id"), s.text(path+"/diskseq")
	if boot == "" || seq == "" {
		return ""
	}
	return boot + "/" + seq
}

func transportOf(path string) drivebay.Transport {
	for _, t := range transports {
		if t.path.MatchString(path) {
			return t.is
		}
	}
	return drivebay.TransportUnknown
}

// familyOf picks the reader that knows the attributes of this kind of device.
func familyOf(name string, s *sysfs, path string) func(*sysfs, string, *drivebay.Drive) bool {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return readNVMe
	case strings.HasPrefix(name, "mmcblk"):
		return readMMC
	case strings.HasPrefix(name, "loop"):
		return readLoop
	case strings.HasPrefix(name, "sd"):
		return readSCSI
	}
	return readVirtio
}

func readNVMe(s *sysfs, path string, d *drivebay.Drive) bool {
	d.Type, d.Transport, d.Protocol = drivebay.TypeNVMe, drivebay.TransportNVMe, drivebay.ProtocolNVMe
	dev := path + "/device" // the controller, or the subsystem when the kernel does multipath
	if !s.exists(dev) {
		dev = path[:strings.LastIndex(path, "/")]
	}
	d.Model, d.Serial, d.Firmware = s.text(dev+"/model"), s.text(dev+"/serial"), s.text(dev+"/firmware_rev")
	d.WWN, d.Namespace = s.nvmeWWN(path), s.text(path+"/nsid")
	at := &d.Paths[0]
	at.State, at.Address = s.text(dev+"/state"), s.text(dev+"/address")
	return true
}

// nvmeWWN is a namespace's own name. Kernels before 4.13 had one attribute for
// each kind of it: NGUID with dashes, EUI-64 in bytes.
func (s *sysfs) nvmeWWN(path string) string {
	if wwid := s.text(path + "/wwid"); wwid != "" {
		return usableWWN(wwid)
	}
	bare := strings.NewReplacer(" ", "", "-", "")
	for _, wwn := range []string{"uuid." + s.text(path+"/uuid"), "eui." + bare.Replace(s.text(path+"/nguid")), "eui." + bare.Replace(s.text(path+"/eui"))} {
		if wwn = usableWWN(wwn); wwn != "" {
			return wwn
		}
	}
	return ""
}

func readMMC(s *sysfs, path string, d *drivebay.Drive) bool {
	dev := path + "/device"
	d.Type, d.Transport = drivebay.TypeSSD, drivebay.TransportMMC
	d.Model, d.Serial, d.Firmware = s.text(dev+"/name"), s.text(dev+"/serial"), s.text(dev+"/fwrev")
	return true
}

// readLoop: a loop device is its file, whatever number it has today
// (drivers/block/loop.c, backing_file).
func readLoop(s *sysfs, path string, d *drivebay.Drive) bool {
	d.Model, d.Serial = "loop", s.text(path+"/loop/backing_file")
	return true
}

// readVirtio also serves disks of other hypervisors. Their "rotational" says
// nothing of the medium behind: it is 1 where nobody says otherwise. The type
// stays unknown, so that nobody judges them by the rules of a hard disk.
func readVirtio(s *sysfs, path string, d *drivebay.Drive) bool {
	d.Serial = s.text(path + "/serial")
	return true
}

// blockDevices lists whole block devices. Incomplete copies of a sysfs may lack
// sys/block and still have sys/class/block, which holds partitions as well.
func (s *sysfs) blockDevices() ([]string, error) {
	s.blockDir = "sys/block"
	names, err := s.ReadDir(s.blockDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return names, err
	}
	s.blockDir = "sys/class/block"
	all, err := s.ReadDir(s.blockDir)
	if err != nil {
		return nil, fmt.Errorf("neither sys/block nor %w", err)
	}
	for _, name := range all {
		if s.exists(s.blockDir + "/" + name + "/partition") {
			s.partitions = append(s.partitions, name)
		} else {
			names = append(names, name)
		}
	}
	return names, nil
}
