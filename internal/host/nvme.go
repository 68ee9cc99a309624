package host

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nvmeCommand is struct nvme_passthru_cmd of include/uapi/linux/nvme_ioctl.h.
type nvmeCommand struct {
	opcode, flags uint8
	_             uint16
	nsid          uint32
	cdw2, cdw3    uint32
	metadata      uint64
	addr          uint64
	metadataLen   uint32
	dataLen       uint32
	cdw10, cdw11  uint32
	cdw12, cdw13  uint32
	cdw14, cdw15  uint32
	timeout       uint32 // milliseconds
	result        uint32
}

const (
	nvmeIoctlID  = 0x4e40     // _IO('N', 0x40)
	nvmeIoctlCmd = 0xc0484e41 // _IOWR('N', 0x41, struct nvme_passthru_cmd)

	nvmeGetLogPage = 0x02
	nvmeIdentify   = 0x06
	nvmeSelfTest   = 0x14
	allNamespaces  = 0xffffffff
)

// nvmePage is one page: an identify structure or a log.
type nvmePage struct {
	opcode byte
	nsid   bool   // of this namespace, not of the controller
	id     uint32 // CNS or log identifier
	length int
}

var nvmePages = map[Page]nvmePage{
	NVMeIdentifyController: {nvmeIdentify, false, 0x01, 4096},
	NVMeIdentifyNamespace:  {nvmeIdentify, true, 0x00, 4096},
	NVMeSmartLog:           {nvmeGetLogPage, false, 0x02, 512},
	NVMeErrorLog:           {nvmeGetLogPage, false, 0x01, 64 * 64},
	NVMeSelfTestLog:        {nvmeGetLogPage, false, 0x06, 564},
}

// command builds the admin command (NVM Express base 2.0, 5.16 and 5.17).
func (p nvmePage) command(nsid uint32, length int) nvmeCommand {
	c := nvmeCommand{opcode: p.opcode, cdw10: p.id, dataLen: uint32(length)}
	if p.nsid {
		c.nsid = nsid
	}
	if p.opcode == nvmeGetLogPage {
		dwords := uint32(length/4 - 1) // zero-based
		c.nsid = allNamespaces
		c.cdw10 |= dwords << 16
		c.cdw11 = dwords >> 16
	}
	return c
}

func (d *realDrive) nvmeRead(p nvmePage, timeout time.Duration) ([]byte, error) {
	length := p.length
	if p.id == 0x01 && p.opcode == nvmeGetLogPage { // no more entries than the drive keeps: ELPE, identify byte 262
		id, err := d.nvmeRead(nvmePages[NVMeIdentifyController], timeout)
		if err != nil {
			return nil, err
		}
		length = min(length, (int(id[262])+1)*64)
	}
	nsid, err := unix.IoctlRetInt(d.fd, nvmeIoctlID)
	if err != nil {
		return nil, fmt.Errorf("%w: not an NVMe namespace: %w", ErrUnsupported, err)
	}
	buf := make([]byte, length)
	c := p.command(uint32(nsid), length)
	c.addr = uint64(uintptr(unsafe.Pointer(&buf[0])))
	err = d.nvmeAdmin(&c, timeout)
	runtime.KeepAlive(buf)
	if err != nil {
		return nil, err
	}
	return buf, nil
}

// nvmeAdmin sends an admin command. The ioctl returns the NVMe status as its own value: a positive one
// means that the command failed and its buffer is not valid.
func (d *realDrive) nvmeAdmin(c *nvmeCommand, timeout time.Duration) error {
	c.timeout = uint32(timeout.Milliseconds())
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), nvmeIoctlCmd, uintptr(unsafe.Pointer(c)))
	if errno == unix.EINTR { // the driver cancelled it: a timeout, or a reset in progress (nvme_submit_user_cmd)
		return fmt.Errorf("%w: the kernel gave up the command", ErrTimeout)
	}
	if errno != 0 {
		return ioctlError(errno)
	}
	return nvmeStatus(uint16(status))
}

// nvmeStatus turns a status field into an error (NVM Express base 2.0, 4.2.3).
func nvmeStatus(status uint16) error {
	switch status & 0x7ff {
	case 0:
		return nil
	case 0x001, 0x002, 0x00b, 0x109: // invalid opcode, field, namespace; invalid log page
		return fmt.Errorf("%w: NVMe status %03xh", ErrUnsupported, status&0x7ff)
	case 0x007, 0x371: // aborted on request, by the host: what the driver does after its timeout
		return fmt.Errorf("%w: NVMe status %03xh", ErrTimeout, status&0x7ff)
	}
	return fmt.Errorf("the drive failed the command: NVMe status %03xh", status&0x7ff)
}
