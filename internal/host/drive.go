package host

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// realDrive is an open block device.
type realDrive struct {
	fd     int
	direct direct
	first  firstAccess
}

func (d *realDrive) Close() error {
	d.direct.close()
	return unix.Close(d.fd)
}

// ReadMedium reopens the device through its own descriptor: its name may lead to another device by
// now.
func (d *realDrive) ReadMedium(p []byte, off int64) (int, error) {
	file, err := d.direct.open(fmt.Sprintf("/proc/self/fd/%d", d.fd))
	if err != nil {
		return 0, fmt.Errorf("open for direct reads: %w", openError(err))
	}
	b := aligned(len(p), directAlign)
	n, err := file.ReadAt(b, off)
	copy(p, b[:n])
	if err != nil {
		err = fmt.Errorf("read at %d: %w", off, mediumError(err))
	}
	return n, err
}

// directAlign is the memory alignment that direct reads of any device accept.
const directAlign = 4 << 10

func (d *realDrive) ReadAt(p []byte, off int64) (int, error) {
	d.first.drop(d.fd)
	done := 0
	for done < len(p) {
		n, err := unix.Pread(d.fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return done, fmt.Errorf("read at %d: %w", off, err)
		case n == 0:
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

// The time for one command: without a deadline, and at most.
const (
	commandTime    = 10 * time.Second
	maxCommandTime = 30 * time.Second
)

func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return commandTime
	}
	return min(max(time.Until(end), time.Second), maxCommandTime)
}

func (d *realDrive) Page(ctx context.Context, p Page) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	timeout := timeLeft(ctx)
	family, _, _ := strings.Cut(string(p), "-")
	switch Family(family) {
	case FamilyATA:
		if p == ATADevStats {
			return d.deviceStatistics(timeout)
		}
		if c, ok := ataCommands[p]; ok {
			return d.ata(c, timeout)
		}
	case FamilyNVMe:
		if n, ok := nvmePages[p]; ok {
			return d.nvmeRead(n, timeout)
		}
	case FamilySCSI:
		if p == SCSITestUnitReady {
			return d.ready(timeout)
		}
		if c, ok := scsiPages[p]; ok {
			b, _, err := sgExec(d.fd, c.cdb, c.length, timeout)
			return b, err
		}
	}
	return nil, fmt.Errorf("%s: %w: no such page", p, ErrUnsupported)
}

// selfTestCode holds the code of each test by family: the subcommand of SMART EXECUTE OFF-LINE
// IMMEDIATE (ACS-4 7.44.4), STC of Device Self-test (NVMe base 5.9), the self-test code of SEND
// DIAGNOSTIC (SPC-5 6.40).
var selfTestCode = map[Family]map[SelfTestKind]byte{
	FamilyATA:  {SelfTestShort: 0x01, SelfTestLong: 0x02, SelfTestAbort: 0x7f},
	FamilyNVMe: {SelfTestShort: 0x1, SelfTestLong: 0x2, SelfTestAbort: 0xf},
	FamilySCSI: {SelfTestShort: 0x1, SelfTestLong: 0x2, SelfTestAbort: 0x4},
}

func (d *realDrive) SelfTest(ctx context.Context, t SelfTest) error {
	code, ok := selfTestCode[t.Family][t.Kind]
	if !ok {
		return fmt.Errorf("self-test %s of %s: %w", t.Kind, t.Family, ErrUnsupported)
	}
	timeout := timeLeft(ctx)
	switch t.Family {
	case FamilyATA:
		_, err := d.ata(ataSelfTest(code), timeout)
		return err
	case FamilyNVMe:
		return d.nvmeAdmin(&nvmeCommand{opcode: nvmeSelfTest, nsid: allNamespaces, cdw10: uint32(code)}, timeout)
	}
	_, _, err := sgExec(d.fd, sendDiagnostic(code), 0, timeout)
	return err
}

// ataSelfTest returns a command that expects no registers: it is enough that the drive accepts it, and
// not every bridge returns them.
func ataSelfTest(code byte) ataCommand {
	return ataCommand{command: 0xb0, feature: 0xd4, lba: smartKey | uint64(code)}
}

func sendDiagnostic(code byte) []byte { return []byte{0x1d, code << 5, 0, 0, 0, 0} }
