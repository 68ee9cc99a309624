package host

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sgHeader is struct sg_io_hdr of include/scsi/sg.h.
type sgHeader struct {
	interfaceID    int32
	direction      int32
	cmdLen         uint8
	maxSense       uint8
	iovecCount     uint16
	dataLen        uint32
	data           unsafe.Pointer
	cmd            unsafe.Pointer
	sense          unsafe.Pointer
	timeout        uint32 // milliseconds
	flags          uint32
	packID         int32
	userPtr        unsafe.Pointer
	status         uint8
	maskedStatus   uint8
	msgStatus      uint8
	senseWritten   uint8
	hostStatus     uint16
	driverStatus   uint16
	residual       int32
	duration, info uint32
}

const (
	sgIO       = 0x2285
	sgNone     = -1
	sgFromDev  = -3
	didNoConn  = 0x01 // DID_NO_CONNECT (include/scsi/scsi_status.h)
	didTimeout = 0x03 // DID_TIME_OUT
	didBadTgt  = 0x04 // DID_BAD_TARGET
	drvTimeout = 0x06 // DRIVER_TIMEOUT and DRIVER_SENSE, of kernels before 5.14
	drvSense   = 0x08
	statusOK   = 0x00
	statusChk  = 0x02 // CHECK CONDITION
)

// sgExec sends one SCSI command that reads n bytes, or none, and returns the data and the sense. A
// command that did not succeed never returns data. A unit attention reports an event of the drive (a
// reset, a change) in place of the answer. The drive did not execute the command, so sgExec sends it
// once more (SAM-5 5.14).
func sgExec(fd int, cdb []byte, n int, timeout time.Duration) ([]byte, sense, error) {
	b, s, err := sgExecOnce(fd, cdb, n, timeout)
	if err != nil && s.key == keyUnitAttention {
		return sgExecOnce(fd, cdb, n, timeout)
	}
	return b, s, err
}

func sgExecOnce(fd int, cdb []byte, n int, timeout time.Duration) ([]byte, sense, error) {
	buf, senseBuf := make([]byte, n), make([]byte, 64)
	h := sgHeader{
		interfaceID: 'S', direction: sgNone, cmdLen: uint8(len(cdb)), cmd: unsafe.Pointer(&cdb[0]),
		maxSense: uint8(len(senseBuf)), sense: unsafe.Pointer(&senseBuf[0]),
		timeout: uint32(timeout.Milliseconds()),
	}
	if n > 0 {
		h.direction, h.dataLen, h.data = sgFromDev, uint32(n), unsafe.Pointer(&buf[0])
	}
	err := ioctl(fd, sgIO, unsafe.Pointer(&h))
	runtime.KeepAlive(cdb)
	if err != nil {
		return nil, sense{}, err
	}
	s, err := h.outcome(senseBuf)
	if err != nil {
		return nil, s, err
	}
	return buf[:n-min(max(int(h.residual), 0), n)], s, nil
}

// outcome returns the sense and the error of a command. It reads the status of the controller, of the
// driver and of the drive with its sense.
func (h *sgHeader) outcome(senseBuf []byte) (sense, error) {
	s, has := parseSense(senseBuf[:min(int(h.senseWritten), len(senseBuf))])
	switch driver := h.driverStatus & 0x0f; {
	case h.hostStatus == didTimeout, driver == drvTimeout:
		return s, fmt.Errorf("%w: the kernel gave up the command", ErrTimeout)
	case h.hostStatus == didNoConn, h.hostStatus == didBadTgt:
		return s, fmt.Errorf("%w: no such device: host status %02xh", ErrGone, h.hostStatus)
	case h.hostStatus != 0:
		return s, fmt.Errorf("the controller failed the command: host status %02xh", h.hostStatus)
	case h.status == statusChk && has:
		return s, s.err()
	case h.status != statusOK:
		return s, fmt.Errorf("the drive failed the command: status %02xh", h.status)
	case driver != 0 && driver != drvSense:
		return s, fmt.Errorf("the driver failed the command: driver status %02xh", h.driverStatus)
	}
	return s, nil
}

// ioctl calls ioctl(2) and wraps its errors.
func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		if errno != unix.EINTR {
			return ioctlError(errno)
		}
	}
}

func ioctlError(errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ENOTTY, unix.EINVAL, unix.EOPNOTSUPP:
		return fmt.Errorf("%w: the driver has no pass-through: %w", ErrUnsupported, errno)
	case unix.EACCES, unix.EPERM:
		return fmt.Errorf("%w: reading health pages requires root, or CAP_SYS_RAWIO and CAP_SYS_ADMIN: %w", ErrPermission, errno)
	case unix.ENXIO, unix.ENODEV:
		return fmt.Errorf("%w: %w", ErrGone, errno)
	case unix.ETIMEDOUT, unix.ETIME:
		return fmt.Errorf("%w: %w", ErrTimeout, errno)
	}
	return errno
}
