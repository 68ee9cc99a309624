package faults

import (
	"fmt"
	"strconv"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
	"github.com/drivebay/drivebay/internal/hostsim/internal/pages"
)

// faultRow is a fault: its documentation and its function.
type faultRow struct {
	FaultDoc
	absent bool // applies to a pulled drive as well
	do     func(*Injector, *block.Drive, arguments) error
	fs     fsFault // the function for filesystems, instead of do or beside it
}

// switchOn returns a fault function that sets a flag.
func switchOn(of func(*block.Drive) *bool) func(*Injector, *block.Drive, arguments) error {
	return func(_ *Injector, d *block.Drive, _ arguments) error {
		*of(d) = true
		return nil
	}
}

// count returns a fault function that sets a counter of the drive to n.
func count(usual, most uint64, of func(*model.Counters) *uint64, then func(*block.Drive, uint64)) func(*Injector, *block.Drive, arguments) error {
	return func(_ *Injector, d *block.Drive, a arguments) error {
		n, err := a.number("n", usual, most)
		if err != nil {
			return err
		}
		*of(&d.Age) = n
		if then != nil {
			then(d, n)
		}
		return nil
	}
}

const manyErrors = 1 << 40

// maxLogged bounds the log lines of one fault.
const maxLogged = 64

var faultTable = []faultRow{
	{FaultDoc{"vanish", "", "pull the drive: its entries go, uevents are sent, open handles end"}, false, vanish, nil},
	{FaultDoc{"return", "rename=false", "push it back into its bay; rename=true under a kernel name that was never used"}, true, comeBack, nil},
	{FaultDoc{"move", "to=BAY", "pull it and push it into another bay, which must be empty"}, true, move, nil},
	{FaultDoc{"swap", "with=BAY", "it and the drive of another bay change places"}, false, swap, nil},
	{FaultDoc{"replace", "serial=NEW{n} size=SAME kind=SAME content=blank", "put a drive from the shelf into its bay; it goes there itself"}, true, replace, nil},
	{FaultDoc{"hang", "", "answer nothing: every command waits until heal or vanish, whatever its deadline"}, false, hang, nil},
	{FaultDoc{"eio", "lines=3 write=false", "fail every command and read with an I/O error; lines in the kernel log, of reads or of writes"}, false, failIO, nil},
	{FaultDoc{"unreadable", "sector=4660 n=8", "n sectors of 512 bytes from one on cannot be read until they are written"}, false, unreadable, nil},
	{FaultDoc{"slow", "delay=2s", "answer every command late"}, false, slow, nil},
	{FaultDoc{"read-only", "", "the drive takes no writes any more; what is on it can be read"}, false, readOnly, nil},
	{FaultDoc{"wear", "percent=95 spare=100", "percentage of the endurance used (up to 255) and spare left"}, false, wear, nil},
	{FaultDoc{"reallocate", "n=100", "reallocated sectors, or grown defects of a SAS drive, become n"}, false, count(100, manyErrors, func(a *model.Counters) *uint64 { return &a.Reallocated }, nil), nil},
	{FaultDoc{"pending", "n=8", "n sectors wait for reallocation; reading one of them fails"}, false, count(8, manyErrors, func(a *model.Counters) *uint64 { return &a.Pending }, func(d *block.Drive, n uint64) { logSectors(d, min(n, 1)) }), nil},
	{FaultDoc{"media-errors", "n=5", "n reads could not be corrected, each with a line in the kernel log"}, false, mediaErrors, nil},
	{FaultDoc{"critical-warning", "bits=0x04", "NVMe: the bits of critical_warning"}, false, criticalWarning, nil},
	{FaultDoc{"fail", "", "the drive's own verdict becomes FAILED"}, false, failVerdict, nil},
	{FaultDoc{"heat", "celsius=75", "the temperature becomes celsius"}, false, heat, nil},
	{FaultDoc{"crc", "n=200", "ATA: n transfers were damaged on the cable"}, false, count(200, manyErrors, func(a *model.Counters) *uint64 { return &a.CRCErrors }, nil), nil},
	{FaultDoc{"change-serial", "serial=CHANGED1", "the drive comes back with another serial number and name, as a swapped one does"}, false, changeSerial, nil},
	{FaultDoc{"duplicate-serial", "of=BAY", "the drive comes back with the serial number and world wide name of another"}, false, duplicateSerial, nil},
	{FaultDoc{"no-serial", "wwn=true", "the drive comes back without a serial number; wwn=false: nor a world wide name"}, false, noSerial, nil},
	{FaultDoc{"non-utf8", "", "the drive comes back with bytes in its model name that are no UTF-8"}, false, nonUTF8, nil},
	{FaultDoc{"garbage", "", "every page is random bytes"}, false, switchOn(func(d *block.Drive) *bool { return &d.Spoilt.Garbage }), nil},
	{FaultDoc{"short-pages", "", "every page ends after a third"}, false, switchOn(func(d *block.Drive) *bool { return &d.Spoilt.ShortPages }), nil},
	{FaultDoc{"bad-checksum", "", "ATA: the checksum of every page is wrong"}, false, badChecksum, nil},
	{FaultDoc{"counters-max", "", "every counter is at its largest, 255 % of the endurance is used"}, false, countersMax, nil},
	{FaultDoc{"standby", "", "the drive sleeps; a page other than the power mode wakes it, which is counted"}, false, standby, nil},
	{FaultDoc{"offline", "", "SCSI: the kernel gives the device up: state offline, open fails"}, false, offline, nil},
	{FaultDoc{"nvme-dead", "", "NVMe: the controller is given up: state dead, size 0"}, false, nvmeDead, nil},
	{FaultDoc{"selftest-fail", "count=1 further=true", "count self-tests ended with a read failure, and further ones will; further=false: they pass"}, false, selftestFail, nil},
	{FaultDoc{"selftest-selective", "from=4660 to=4667", "ATA: a program beside the daemon starts a selective self-test of these sectors"}, false, selftestSelective, nil},
	{FaultDoc{"uevent-storm", "rate=100 seconds=10", "change events for the drive, rate a second"}, false, storm, nil},
	{FaultDoc{"overflow", "", "uevents are lost, and the receivers get an overflow"}, true, overflow, nil},
	{FaultDoc{"sysfs-flicker", "", "every third look at an entry of the drive does not find it"}, false, switchOn(func(d *block.Drive) *bool { return &d.Faults.Flicker }), nil},
	{FaultDoc{"resize", "size=HALF", "the drive has another size: a hidden area, a bridge that truncates; what lies beyond is kept, and can be read again when the size is back"}, true, resizeDrive, nil},
	{FaultDoc{"permission", "", "opening the drive is not permitted"}, false, switchOn(func(d *block.Drive) *bool { return &d.Faults.Denied }), nil},
	{FaultDoc{"fs-corrupt", "", "damage the filesystems of the drive, or the one of a device or place: fsck finds errors"}, false, nil, fsCorrupt},
	{FaultDoc{"fs-errors", "n=1", "the kernel has found n errors in the mounted filesystem: errors_count, a line in the log, read-only where errors=remount-ro says so"}, false, nil, fsErrors},
	{FaultDoc{"fs-read-only", "hidden=false", "the mounted filesystem turns read-only, as after an error; hidden=true: only the kernel's log says so, as with ext4 from Linux 6.12 to 6.14"}, false, nil, fsReadOnly},
	{FaultDoc{"fs-fill", "percent=95", "the filesystem is that full"}, false, nil, fsFill},
	{FaultDoc{"fs-unmount", "", "the filesystem is unmounted everywhere, without a call to the daemon"}, false, nil, fsUnmount},
	{FaultDoc{"heal", "", "undo everything, pulling it included; of a device or place, what was done to its filesystem"}, true, heal, healFS},
}

// needFamily refuses a fault that this kind of drive cannot have.
func needFamily(d *block.Drive, what string, families ...host.Family) error {
	for _, f := range families {
		if f == d.Family() {
			return nil
		}
	}
	return fmt.Errorf("%w: a %s drive has no %s", kernel.ErrInvalid, d.Kind.Name, what)
}

func failVerdict(x *Injector, d *block.Drive, _ arguments) error {
	if err := needFamily(d, "verdict", host.FamilyATA, host.FamilyNVMe, host.FamilySCSI); err != nil {
		return err
	}
	d.Age.Failed = true
	return nil
}

func badChecksum(x *Injector, d *block.Drive, _ arguments) error {
	if err := needFamily(d, "checksum", host.FamilyATA); err != nil {
		return err
	}
	d.Spoilt.BadChecksum = true
	return nil
}

func countersMax(x *Injector, d *block.Drive, _ arguments) error {
	d.Spoilt.CountersMax, d.Age.PercentageUsed = true, 255
	return nil
}

func wear(x *Injector, d *block.Drive, a arguments) error {
	used, err := a.number("percent", 95, 255)
	if err != nil {
		return err
	}
	spare, err := a.number("spare", uint64(d.Age.Spare), 100)
	if err != nil {
		return err
	}
	if d.Kind.RPM > 0 {
		return fmt.Errorf("%w: a %s drive does not wear", kernel.ErrInvalid, d.Kind.Name)
	}
	d.Age.PercentageUsed, d.Age.Spare = int(used), int(spare)
	return nil
}

func mediaErrors(x *Injector, d *block.Drive, a arguments) error {
	n, err := a.number("n", 5, manyErrors)
	if err != nil {
		return err
	}
	d.Age.MediaErrors, d.Age.Uncorrectable = n, n
	logSectors(d, min(n, maxLogged))
	return nil
}

func logSectors(d *block.Drive, n uint64) {
	for i := range n {
		d.LogMedium(pages.FailingLBA + 8*i)
	}
}

func criticalWarning(x *Injector, d *block.Drive, a arguments) error {
	if err := needFamily(d, "critical warning", host.FamilyNVMe); err != nil {
		return err
	}
	bits, err := a.number("bits", 0x04, 0xFF)
	if err == nil {
		d.Age.CriticalWarning = uint8(bits)
	}
	return err
}

func heat(x *Injector, d *block.Drive, a arguments) error {
	n, err := a.number("celsius", 75, 120)
	if err == nil {
		d.Age.Temperature = int(n)
	}
	return err
}

func failIO(x *Injector, d *block.Drive, a arguments) error {
	n, err := a.number("lines", 3, maxLogged)
	if err != nil {
		return err
	}
	wrote, err := a.flag("write")
	if err != nil {
		return err
	}
	op := "0x0:(READ)"
	if wrote {
		op = "0x1:(WRITE)"
	}
	d.Faults.Eio = true
	for i := range n {
		d.IO.Errors++
		logIO(d, 2048+8*i, op)
	}
	return nil
}

func unreadable(x *Injector, d *block.Drive, a arguments) error {
	first, err := a.number("sector", pages.FailingLBA, d.Size/512)
	if err != nil {
		return err
	}
	n, err := a.number("n", 8, 1<<20)
	if err != nil {
		return err
	}
	if d.Faults.Bad == nil {
		d.Faults.Bad = map[uint64]bool{}
	}
	for i := range n {
		d.Faults.Bad[first+i] = true
	}
	return nil
}

func slow(x *Injector, d *block.Drive, a arguments) error {
	text := a.text("delay", "2s")
	delay, err := time.ParseDuration(text)
	if err != nil || delay < 0 || delay > time.Hour {
		return fmt.Errorf("delay=%s: %w: want a time such as 500ms or 2s", text, kernel.ErrInvalid)
	}
	d.Faults.Slow = delay
	return nil
}

func hang(x *Injector, d *block.Drive, _ arguments) error {
	if d.Faults.Hang == nil {
		d.Faults.Hang = make(chan struct{})
		logTimeout(d)
	}
	return nil
}

func readOnly(x *Injector, d *block.Drive, _ arguments) error {
	d.Faults.ReadOnly = true
	d.Changed()
	return nil
}

func standby(x *Injector, d *block.Drive, _ arguments) error {
	if err := needFamily(d, "standby", host.FamilyATA, host.FamilySCSI); err != nil {
		return err
	}
	d.Asleep = true
	return nil
}

func offline(x *Injector, d *block.Drive, _ arguments) error {
	if d.Kind.Letters != "sd" {
		return fmt.Errorf("%w: a %s drive is no SCSI device", kernel.ErrInvalid, d.Kind.Name)
	}
	d.Faults.Offline = true
	d.IO.Timeouts++
	for _, p := range d.Places {
		d.Devices.Logf(kernel.LevelInfo, "sd %s: Power-on or device reset occurred", p.Hctl)
		d.Devices.Logf(kernel.LevelErr, "sd %s: Device offlined - not ready after error recovery", p.Hctl)
	}
	d.Changed()
	return nil
}

func nvmeDead(x *Injector, d *block.Drive, _ arguments) error {
	if err := needFamily(d, "controller state", host.FamilyNVMe); err != nil {
		return err
	}
	d.Faults.Dead = true
	for _, p := range d.Places {
		d.Devices.Logf(kernel.LevelErr, "nvme %s: Device not ready; aborting reset, CSTS=0x1", p.Ctrl)
		d.Devices.Logf(kernel.LevelErr, "nvme %s: Disabling device after reset failure: -19", p.Ctrl)
	}
	d.Changed()
	return nil
}

func selftestFail(x *Injector, d *block.Drive, a arguments) error {
	n, err := a.number("count", 1, pages.MaxTests)
	if err != nil {
		return err
	}
	further, err := a.flag("further")
	if err != nil {
		return err
	}
	d.Spoilt.TestsFail = further || a.args["further"] == ""
	for range n {
		d.LogTest(pages.TestResult{Kind: pages.TestShort, Result: pages.TestFailed, Hours: d.Hours(), Lba: pages.FailingLBA})
	}
	return nil
}

func selftestSelective(x *Injector, d *block.Drive, a arguments) error {
	if err := needFamily(d, "selective self-test", host.FamilyATA); err != nil {
		return err
	}
	last := d.Size/d.Block - 1
	from, err := a.number("from", pages.FailingLBA, last)
	if err != nil {
		return err
	}
	to, err := a.number("to", max(from, pages.FailingLBA+7), last)
	if err != nil {
		return err
	}
	if to < from {
		return fmt.Errorf("from=%d to=%d: %w: want a range", from, to, kernel.ErrInvalid)
	}
	d.StartSelective(pages.Span{First: from, Last: to})
	return nil
}

// resizeDrive changes the size of a drive. A present drive keeps its partitions, and the kernel sends
// an event (block/genhd.c, set_capacity_and_notify).
func resizeDrive(x *Injector, d *block.Drive, a arguments) error {
	text := a.text("size", fmt.Sprintf("%dB", d.Size/2/d.Block*d.Block))
	size, err := model.ParseSize(text)
	if err != nil || size < 1<<20 || size%d.Block != 0 {
		return fmt.Errorf("size=%s: %w: want whole blocks", text, kernel.ErrInvalid)
	}
	setSize(d, size)
	return nil
}

func overflow(x *Injector, d *block.Drive, _ arguments) error {
	d.Devices.Uevents.Send(d.Devices.Uevents.Lost)
	return nil
}

// storm sends change events until its time is over, the drive is healed or pulled, or the machine is
// closed.
func storm(x *Injector, d *block.Drive, a arguments) error {
	rate, err := a.number("rate", 100, 10000)
	if err != nil {
		return err
	}
	seconds, err := a.number("seconds", 10, 3600)
	if err != nil || rate == 0 {
		return fmt.Errorf("rate=%d seconds=%s: %w", rate, strconv.Quote(a.text("seconds", "10")), kernel.ErrInvalid)
	}
	if d.Faults.Calm != nil {
		close(d.Faults.Calm)
	}
	calm := make(chan struct{})
	d.Faults.Calm = calm
	d.Devices.Busy.Go(func() { blow(d, calm, int(rate*seconds), time.Second/time.Duration(rate)) })
	return nil
}

func blow(d *block.Drive, calm <-chan struct{}, n int, every time.Duration) {
	for range n {
		select {
		case <-calm:
			return
		default:
		}
		d.Devices.Mu.Lock()
		d.Changed()
		d.Devices.Mu.Unlock()
		if !d.Devices.Pause(every) {
			return
		}
	}
}

// logIO logs a request that failed for another reason.
func logIO(d *block.Drive, sector uint64, op string) {
	d.Devices.Logf(kernel.LevelErr, "I/O error, dev %s, sector %d op %s flags 0x0 phys_seg 1 prio class 2", d.Name, sector, op)
}

// logTimeout logs commands that timed out.
func logTimeout(d *block.Drive) {
	p := d.Places[0]
	d.IO.Timeouts++
	switch d.Kind.Letters {
	case "nvme":
		d.Devices.Logf(kernel.LevelWarn, "nvme %s: I/O tag 181 (10b5) opcode 0x2 (Read) QID 3 timeout, aborting", p.Ctrl)
	case "sd":
		d.Devices.Logf(kernel.LevelInfo, "sd %s: Power-on or device reset occurred", p.Hctl)
	}
}

// setSize changes the size of a drive; the kernel sends an event for each path.
func setSize(d *block.Drive, size uint64) {
	d.Size = size
	if d.Present {
		for _, disk := range d.Disks {
			d.Devices.Uevent("change", "block", disk.Dir, disk.Name, map[string]string{"DEVTYPE": "disk", "RESIZE": "1"})
		}
	}
}
