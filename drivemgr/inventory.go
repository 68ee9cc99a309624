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

// InventoryOptions holds what counts as a drive and how much a listing reads.
type InventoryOptions struct {
	Loop bool // loop devices count as drives
	// Dark leaves out the lights of enclosures and the status of their bays: each read
	// is a command to the enclosure (drivers/scsi/ses.c, ses_get_locate and
	// ses_get_status), and a big enclosure has a hundred bays.
	Dark bool
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
	Complete bool
	Dark     bool // lights and status of enclosures were not read
	Problems []string
	began    uint64 // number from Manager.moment
}

// Observe lists the drives of a machine. It reads sysfs and the udev database and opens
// no device.
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
		if d, ok := readDrive(s, name); ok {
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

// never matches block devices that are not drives.
var never = regexp.MustCompile(`^(dm-|md|zram|ram|sr|fd|nbd|rbd|drbd|bcache|zd|nullb|ublkb|mtdblock|pmem|mmcblk\d+(boot\d+|rpmb|gp\d+)|nvme\d+c\d+n\d+)`)

func mayBeDrive(name string, opt InventoryOptions) bool {
	if strings.HasPrefix(name, "loop") {
		return opt.Loop
	}
	return !never.MatchString(name)
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

// readDrive reads one block device. It returns false for a device that vanished, is being
// removed, is hidden, has no medium, or is a SCSI device of another type.
func readDrive(s *sysfs, name string) (drivebay.Drive, bool) {
	dir := s.blockDir + "/" + name
	path, err := s.Resolve(dir)
	if err != nil {
		path = dir
	}
	d := drivebay.Drive{Name: name, Status: drivebay.StatusOnline, Content: drivebay.Content{Reason: drivebay.NotRead}}
	sectors, ok := s.size(path)
	if !ok && s.exists(dir) { // present but not readable: the drive is not gone
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

// going reports whether the kernel is removing a device: then some attributes may be
// missing, and the rest would look like another drive. The kernel removes the file
// "uevent" before the other attributes, of the device and of its parent
// (drivers/base/core.c, device_del; seen with a USB disk on Linux 6.1, which still had
// its serial number but no model).
func (s *sysfs) going(path string) bool {
	return s.tells && (s.lacks(path+"/uevent") || s.exists(path+"/device") && s.lacks(path+"/device/uevent"))
}

// lacks reports whether a file is absent; a file that cannot be read is present.
func (s *sysfs) lacks(name string) bool {
	_, err := s.ReadFile(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrGone)
}

// size returns the sectors of a device; 0 where a recording has the drive without its size.
func (s *sysfs) size(path string) (uint64, bool) {
	b, err := s.ReadFile(path + "/size")
	s.note(path+"/size", err)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.exists(path)
	}
	n, bad := strconv.ParseUint(clean(string(b)), 10, 54) // 54 bits: times 512 still fits 64 bits
	return n, err == nil && bad == nil
}

// diskSeq identifies a disk across all boots; "" where the kernel has no diskseq.
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

// familyOf returns the reader for the attributes of this kind of device.
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

// nvmeWWN returns a namespace's worldwide name. Kernels before 4.13 had one attribute
// for each kind: NGUID with dashes, EUI-64 in bytes.
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

// readLoop identifies a loop device by its file, whatever number the device has
// (drivers/block/loop.c, backing_file).
func readLoop(s *sysfs, path string, d *drivebay.Drive) bool {
	d.Model, d.Serial = "loop", s.text(path+"/loop/backing_file")
	return true
}

// readVirtio also reads disks of other hypervisors. Their "rotational" does not show
// the real medium: it is 1 by default. The type stays unknown, so that the rules for
// hard disks do not apply to them.
func readVirtio(s *sysfs, path string, d *drivebay.Drive) bool {
	d.Serial = s.text(path + "/serial")
	return true
}

// blockDevices lists whole block devices. Incomplete recordings of sysfs may lack
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
