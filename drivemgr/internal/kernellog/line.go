package kernellog

import (
	"regexp"
	"strconv"
)

// Kind is the kind of event that a line of the kernel log reports.
type Kind uint8

const (
	Medium     Kind = iota + 1 // a sector cannot be read or written
	IO                         // a request failed for another reason
	Timeout                    // the kernel gave up a command
	Reset                      // the device or its link was reset
	Offline                    // the kernel gave up the device
	Filesystem                 // a filesystem on it could not read or write
	Corruption                 // a filesystem on it found an error in what it read, or has given up: no request failed
)

// logLines holds the lines that concern a drive's health. dev is a kernel name or a
// SCSI H:C:T:L. Lines that only accompany another one are left out, so that one error
// counts once: the line of the block layer is the one that counts.
var logLines = []struct {
	kind Kind
	line *regexp.Regexp
}{
	// block/blk-core.c blk_errors[]; "critical medium" is ENODATA, the rest EIO and friends. What a disk gets while the kernel has it offline fails
	// with "device offline" since Linux 5.18, and with "I/O" before; newer kernels call "critical nexus" a "reservation conflict".
	{Medium, regexp.MustCompile(`critical medium error, dev (?P<dev>[\w-]+), sector (?P<sector>\d+)`)},
	{IO, regexp.MustCompile(`(?:I/O|critical target|critical nexus|reservation conflict|device offline|protection|timeout|recoverable transport|critical space allocation) error, dev (?P<dev>[\w-]+), sector (?P<sector>\d+)`)},
	{IO, regexp.MustCompile(`Buffer I/O error on dev (?P<dev>[\w-]+), logical block (?P<sector>\d+), lost`)},
	// drivers/scsi/scsi_error.c, sd.c
	{Offline, regexp.MustCompile(`(?:sd|scsi) (?P<dev>\d+:\d+:\d+:\d+): (?:\[\w+\] )?(?:Device offlined|rejecting I/O to (?:offline|dead) device)`)},
	{Timeout, regexp.MustCompile(`(?:sd|scsi) (?P<dev>\d+:\d+:\d+:\d+): (?:\[\w+\] )?.*FAILED Result: hostbyte=DID_TIME_OUT`)},
	// drivers/nvme/host/pci.c names the controller.
	{Timeout, regexp.MustCompile(`nvme (?P<dev>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d|nvme\d+): I/O .*timeout`)},
	{Reset, regexp.MustCompile(`nvme (?P<dev>nvme\d+): (?:resetting controller|controller is down; will reset)`)},
	{Offline, regexp.MustCompile(`nvme (?P<dev>nvme\d+): (?:Removing after probe failure|Device not ready; aborting reset|Disabling device after reset failure)`)},
	// drivers/ata/libata-eh.c; a port has one drive, or one expander.
	{Reset, regexp.MustCompile(`(?P<dev>ata\d+)(?:\.\d+)?: (?:hard|soft) resetting link`)},
	// fs/ext4/super.c, fs/xfs/xfs_message.c, fs/btrfs
	{Corruption, regexp.MustCompile(`EXT4-fs error \(device (?P<dev>[\w-]+)\)`)}, // beside a request that failed it is a second line
	{Corruption, regexp.MustCompile(`XFS \((?P<dev>[\w-]+)\): (?:Metadata (?:corruption|CRC error)|Corruption|Filesystem has been shut down)`)},
	{Filesystem, regexp.MustCompile(`XFS \((?P<dev>[\w-]+)\): (?:Metadata I/O Error|metadata I/O error|log I/O error)`)},
	{Corruption, regexp.MustCompile(`BTRFS (?:error|critical) \(device (?P<dev>[\w-]+)[^)]*\): (?:checksum verify failed|csum failed|unable to fixup|(?:parent transid|level) verify failed|corrupt (?:leaf|node)|bad (?:tree block|fsid)|tree first key mismatch|bdev \S+ errs: wr 0, rd 0, flush 0,)`)},
	{Filesystem, regexp.MustCompile(`BTRFS (?:error|critical) \(device (?P<dev>[\w-]+)`)},
}

// suppressed is what the kernel logs in place of lines about failed requests: it logs ten in five seconds from each place in its code
// (lib/ratelimit.c; block/blk-mq.c, blk_print_req_error and its earlier names; fs/buffer.c).
var suppressed = regexp.MustCompile(`^(?:blk_print_req_error|print_req_error|blk_update_request|buffer_io_error): \d+ callbacks suppressed`)

// Suppressed reports whether a line says that the kernel did not log errors before it.
func Suppressed(line string) bool { return suppressed.MatchString(line) }

// Classify parses one line of the kernel log; ok is false for others.
func Classify(line string) (dev string, kind Kind, sector uint64, ok bool) {
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
