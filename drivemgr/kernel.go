package drivemgr

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// ReadKernel reads what the kernel knows of a drive. Nothing of it touches the
// drive: these are counters and states that the kernel keeps in memory.
func ReadKernel(files host.Files, d *drivebay.Drive, prev *drivebay.Kernel, now time.Time) *drivebay.Kernel {
	s := &sysfs{Files: files}
	dir := "sys/class/block/" + d.Name
	k := &drivebay.Kernel{At: now}
	size, ok := s.number(dir + "/size")
	k.SizeZero = ok && size == 0
	k.State = bestState(s, d)
	for _, name := range ways(d) {
		way := "sys/class/block/" + name
		k.Completed += completed(s.text(way + "/stat"))
		k.Inflight += inflight(s.text(way + "/inflight"))
		k.IOErrors = plus(k.IOErrors, s, way+"/device/ioerr_cnt")
		k.IOTimeouts = plus(k.IOTimeouts, s, way+"/device/iotmo_cnt")
		k.IODone = plus(k.IODone, s, way+"/device/iodone_cnt")
	}
	for _, u := range d.Uses {
		if u.Kind == "mount" {
			k.Filesystems = appendFSErrors(k.Filesystems, s, u.Device)
		}
	}
	// Requests that wait while none comes back: a busy drive completes something.
	if prev != nil && k.Inflight > 0 && prev.Inflight > 0 && k.Completed == prev.Completed {
		k.Frozen = prev.Frozen + now.Sub(prev.At)
	}
	return k
}

// completed sums the requests that came back: reads, writes, discards, flushes
// (Documentation/admin-guide/iostats.rst; the later fields came with 4.18 and 5.5).
func completed(stat string) uint64 {
	f := strings.Fields(stat)
	var sum uint64
	for _, i := range []int{0, 4, 11, 15} {
		if i < len(f) {
			n, _ := strconv.ParseUint(f[i], 10, 64)
			sum += n
		}
	}
	return sum
}

func inflight(text string) uint64 {
	var sum uint64
	for _, f := range strings.Fields(text) {
		n, _ := strconv.ParseUint(f, 10, 64)
		sum += n
	}
	return sum
}

// ways are the block devices whose requests are the drive's: every path of a drive
// with two ports, but the head alone of an NVMe drive, which counts for its paths.
func ways(d *drivebay.Drive) []string {
	names := []string{d.Name}
	for _, p := range d.Paths {
		if p.Dev != "" && p.Name != d.Name {
			names = append(names, p.Name)
		}
	}
	return names
}

// plus adds ioerr_cnt or its company to a sum: hexadecimal, of the SCSI midlayer.
func plus(sum *uint64, s *sysfs, name string) *uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(s.text(name), "0x"), 16, 64)
	if err != nil {
		return sum
	}
	if sum != nil {
		n += *sum
	}
	return &n
}

// states from the best to the worst; a drive with two ways is as well as the
// better of them.
var states = []string{"live", "running", "new", "connecting", "resetting", "quiesce", "blocked", "transport-offline", "offline", "deleting", "deleting (no IO)", "dead", "cancel"}

func bestState(s *sysfs, d *drivebay.Drive) string {
	best, rank := "", len(states)+1
	for _, p := range d.Paths {
		state := s.text("sys/class/block/" + p.Name + "/device/state")
		if m := nvmePath.FindStringSubmatch(p.Name); m != nil {
			state = s.text("sys/class/nvme/nvme" + m[2] + "/state")
		}
		if state == "" {
			continue
		}
		r := len(states)
		for i, known := range states {
			if state == known {
				r = i
			}
		}
		if r < rank {
			best, rank = state, r
		}
	}
	return best
}

// appendFSErrors reads the error counters that ext4 keeps in its superblock
// (Documentation/ABI/testing/sysfs-fs-ext4) and btrfs per device; XFS has none,
// it writes to the kernel log.
func appendFSErrors(list []drivebay.FSError, s *sysfs, dev string) []drivebay.FSError {
	dir := "sys/fs/ext4/" + dev
	errors, ok := s.number(dir + "/errors_count")
	if !ok {
		return list
	}
	warnings, _ := s.number(dir + "/warning_count")
	return append(list, drivebay.FSError{Device: dev, FS: "ext4", Errors: errors, Warnings: warnings})
}

// LogKind is what a line of the kernel log says happened.
type LogKind uint8

const (
	LogMedium     LogKind = iota + 1 // a sector cannot be read or written
	LogIO                            // a request failed for another reason
	LogTimeout                       // a command was given up
	LogReset                         // the device or its link was reset
	LogOffline                       // the kernel gave the device up
	LogFilesystem                    // a filesystem on it found an error
)

// logLines are the lines that speak of a drive's health. dev is a kernel name or
// a SCSI H:C:T:L. Lines that ride along with another one are left out, so that
// one error counts once: the block layer's line is the one that is read.
var logLines = []struct {
	kind LogKind
	line *regexp.Regexp
}{
	// block/blk-core.c blk_errors[]; "critical medium" is ENODATA, the rest EIO and friends.
	{LogMedium, regexp.MustCompile(`critical medium error, dev (?P<dev>[\w-]+), sector (?P<sector>\d+)`)},
	{LogIO, regexp.MustCompile(`(?:I/O|critical target|critical nexus|protection|timeout|recoverable transport|critical space allocation) error, dev (?P<dev>[\w-]+), sector (?P<sector>\d+)`)},
	{LogIO, regexp.MustCompile(`Buffer I/O error on dev (?P<dev>[\w-]+), logical block (?P<sector>\d+), lost`)},
	// drivers/scsi/scsi_error.c, sd.c
	{LogOffline, regexp.MustCompile(`(?:sd|scsi) (?P<dev>\d+:\d+:\d+:\d+): (?:\[\w+\] )?(?:Device offlined|rejecting I/O to (?:offline|dead) device)`)},
	{LogTimeout, regexp.MustCompile(`(?:sd|scsi) (?P<dev>\d+:\d+:\d+:\d+): (?:\[\w+\] )?.*FAILED Result: hostbyte=DID_TIME_OUT`)},
	// drivers/nvme/host/pci.c names the controller.
	{LogTimeout, regexp.MustCompile(`nvme (?P<dev>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d|nvme\d+): I/O .*timeout`)},
	{LogReset, regexp.MustCompile(`nvme (?P<dev>nvme\d+): (?:resetting controller|controller is down; will reset)`)},
	{LogOffline, regexp.MustCompile(`nvme (?P<dev>nvme\d+): (?:Removing after probe failure|Device not ready; aborting reset|Disabling device after reset failure)`)},
	// drivers/ata/libata-eh.c; a port has one drive, or one expander.
	{LogReset, regexp.MustCompile(`(?P<dev>ata\d+)(?:\.\d+)?: (?:hard|soft) resetting link`)},
	// fs/ext4/super.c, fs/xfs/xfs_message.c, fs/btrfs
	{LogFilesystem, regexp.MustCompile(`EXT4-fs error \(device (?P<dev>[\w-]+)\)`)},
	{LogFilesystem, regexp.MustCompile(`XFS \((?P<dev>[\w-]+)\): (?:Metadata (?:corruption|CRC error|I/O Error)|Corruption|metadata I/O error|log I/O error|Filesystem has been shut down)`)},
	{LogFilesystem, regexp.MustCompile(`BTRFS (?:error|critical) \(device (?P<dev>[\w-]+)`)},
}

// ClassifyLog reads one line of the kernel log.
func ClassifyLog(line string) (dev string, kind LogKind, sector uint64, ok bool) {
	for _, l := range logLines {
		m := l.line.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if i := l.line.SubexpIndex("sector"); i > 0 {
			sector, _ = strconv.ParseUint(m[i], 10, 64)
		}
		return m[l.line.SubexpIndex("dev")], l.kind, sector, true
	}
	return "", 0, 0, false
}
