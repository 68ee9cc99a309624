package kernel

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
	"github.com/drivebay/drivebay/internal/host"
)

// Read reads the kernel's counters and states of a drive, except those of its
// filesystems. The kernel keeps them in memory: reading them does not touch the drive.
func Read(files host.Files, d *drivebay.Drive, prev *drivebay.Kernel, now time.Time) *drivebay.Kernel {
	s := &sysfs.Reader{Files: files}
	dir := "sys/class/block/" + d.Name
	k := &drivebay.Kernel{At: now}
	size, ok := s.Number(dir + "/size")
	k.SizeZero = ok && size == 0
	if k.SizeZero && prev != nil && prev.SizeZero {
		k.Zero = prev.Zero + now.Sub(prev.At)
	}
	k.State = bestState(s, d)
	for _, name := range kernelNames(d) {
		way := "sys/class/block/" + name
		stat := numbers(s, way+"/stat")
		k.Completed += stat[statReads] + stat[statWrites] + stat[statDiscards] + stat[statFlushes]
		k.Changed += stat[statWrites] + stat[statDiscards]
		k.Waited += stat[statReadTime] + stat[statWriteTime] + stat[statDiscardTime] + stat[statFlushTime]
		// The number in stat does not replace that of the requests that the drive has: the kernel counts it separately, and it
		// can be 0 while requests wait (Linux 6.18, seen with a loop device that hung: "0" there, "3 1" here).
		waiting := numbers(s, way+"/inflight")
		k.Inflight = max(k.Inflight, waiting[0]+waiting[1])
		if isSCSI(name) {
			k.IOErrors = plus(k.IOErrors, s, way+"/device/ioerr_cnt")
			k.IOTimeouts = plus(k.IOTimeouts, s, way+"/device/iotmo_cnt")
			k.IODone = plus(k.IODone, s, way+"/device/iodone_cnt")
		}
	}
	// Requests wait and none completes: a drive that is merely busy completes some.
	if prev != nil && k.Inflight > 0 && prev.Inflight > 0 && k.Completed == prev.Completed {
		k.Frozen = prev.Frozen + now.Sub(prev.At)
	}
	return k
}

// Fields of stat that count completed requests, and the milliseconds that they took, from the queue to the
// completion (Documentation/admin-guide/iostats.rst; the later ones came with 4.18 and 5.5).
const (
	statReads    = 0
	statWrites   = 4
	statDiscards = 11
	statFlushes  = 15

	statReadTime    = 3
	statWriteTime   = 7
	statDiscardTime = 14
	statFlushTime   = 16
)

// numbers returns the first numbers of a file, 0 for those that it does not have.
func numbers(s *sysfs.Reader, name string) (out [statFlushTime + 1]uint64) {
	text, _ := s.Read(name)
	i := 0
	for f := range bytes.FieldsSeq(text) {
		if i == len(out) {
			break
		}
		out[i], _ = strconv.ParseUint(string(f), 10, 64)
		i++
	}
	return out
}

// isSCSI reports whether the SCSI midlayer has counters for a block device: only
// drivers/scsi/sd.c gives those names. For other devices the manager does not look for
// the counters at each tick.
func isSCSI(name string) bool { return strings.HasPrefix(name, "sd") }

// kernelNames returns the block devices that count the drive's requests: every path of a drive
// with two ports. The head of an NVMe drive counts nothing on older kernels, its hidden
// paths do; where both count, the sum still shows what matters: whether requests wait,
// and whether any complete.
func kernelNames(d *drivebay.Drive) []string {
	names := []string{d.Name}
	for _, p := range d.Paths {
		if p.Name != d.Name {
			names = append(names, p.Name)
		}
	}
	return names
}

// plus adds a counter of the SCSI midlayer, such as ioerr_cnt, to a sum; it is hexadecimal.
func plus(sum *uint64, s *sysfs.Reader, name string) *uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(s.Text(name), "0x"), 16, 64)
	if err != nil {
		return sum
	}
	if sum != nil {
		n += *sum
	}
	return &n
}

// states holds the device states from best to worst; the better of two paths counts for
// the drive.
var states = []string{"live", "running", "new", "connecting", "resetting", "quiesce", "blocked", "transport-offline", "offline", "deleting", "deleting (no IO)", "dead", "cancel"}

func bestState(s *sysfs.Reader, d *drivebay.Drive) string {
	best, rank := "", len(states)+1
	for _, p := range d.Paths {
		state := ""
		if m := sysfs.NVMePath.FindStringSubmatch(p.Name); m != nil {
			state = s.Text("sys/class/nvme/nvme" + m[2] + "/state")
		} else if isSCSI(p.Name) || d.Protocol == drivebay.ProtocolNVMe { // "device" is the controller if the kernel does no multipath
			state = s.Text("sys/class/block/" + p.Name + "/device/state")
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

// FSEvery is how often the manager reads the error counters of filesystems while the
// kernel log has no filesystem error: a node has hundreds, and each is a file to read.
const FSEvery = 10 * time.Second

// FSErrors reads the error counters that ext4 keeps in its superblock
// (Documentation/ABI/testing/sysfs-fs-ext4), of every such filesystem on the drive. XFS
// and btrfs write to the kernel log. It reads the drive's devices by name: otherwise it
// would list all filesystems once for each drive.
func FSErrors(files host.Files, d *drivebay.Drive) []drivebay.FSError {
	s := &sysfs.Reader{Files: files}
	devs := []string{d.Name}
	for _, u := range d.Uses {
		if u.Device != "" {
			devs = append(devs, u.Device)
		}
	}
	slices.Sort(devs)
	var out []drivebay.FSError
	for _, dev := range slices.Compact(devs) {
		dir := "sys/fs/ext4/" + dev
		if errors, ok := s.Number(dir + "/errors_count"); ok {
			fs := drivebay.FSError{Device: dev, FS: "ext4", Errors: errors}
			if errors > 0 {
				fs.Warnings, _ = s.Number(dir + "/warning_count")
			}
			out = append(out, fs)
		}
	}
	return out
}
