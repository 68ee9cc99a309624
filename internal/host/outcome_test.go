package host

import (
	"errors"
	"fmt"
	"testing"
)

// A command that failed in any of the three places is an error; a success with
// nothing in its buffer would read as a perfect drive.
func TestOutcome(t *testing.T) {
	illegal := []byte{0x72, 5, 0x20, 0, 0, 0, 0, 0}
	recovered := []byte{0x70, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x5d, 0}
	unnamed := errors.New("an error without a name of ours")
	for _, c := range []struct {
		name  string
		h     sgHeader
		sense []byte
		want  error
	}{
		{"good", sgHeader{}, nil, nil},
		{"recovered", sgHeader{status: statusChk, driverStatus: drvSense}, recovered, nil},
		{"recovered, new kernel", sgHeader{status: statusChk}, recovered, nil},
		{"illegal request", sgHeader{status: statusChk}, illegal, ErrUnsupported},
		{"check condition without sense", sgHeader{status: statusChk}, nil, unnamed},
		{"check condition with noise", sgHeader{status: statusChk}, []byte{1, 2, 3, 4, 5, 6, 7, 8}, unnamed},
		{"busy", sgHeader{status: 0x08}, nil, unnamed},
		{"reservation conflict", sgHeader{status: 0x18}, nil, unnamed},
		{"no connection", sgHeader{hostStatus: 0x01}, nil, ErrGone},
		{"timed out", sgHeader{hostStatus: 0x03}, nil, ErrTimeout},
		{"host error", sgHeader{hostStatus: 0x07}, nil, unnamed},
		{"host error with good sense", sgHeader{hostStatus: 0x07, status: statusChk}, recovered, unnamed},
		{"driver timed out", sgHeader{driverStatus: 0x06}, nil, ErrTimeout},
		{"driver error", sgHeader{driverStatus: 0x07}, nil, unnamed},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.h.senseWritten = uint8(len(c.sense))
			buf := make([]byte, 64)
			copy(buf, c.sense)
			_, err := c.h.outcome(buf)
			if c.want == unnamed {
				for _, named := range []error{nil, ErrUnsupported, ErrGone, ErrTimeout, ErrStandby, ErrPermission} {
					if errors.Is(err, named) {
						t.Errorf("%v is %v", err, named)
					}
				}
			} else if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestIoctlErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"no such ioctl": {ioctlError(25), ErrUnsupported},
		"not allowed":   {ioctlError(1), ErrPermission},
		"no access":     {openError(fmt.Errorf("open: %w", ioctlError(13))), ErrPermission},
		"no device":     {ioctlError(6), ErrGone},
		"timer":         {ioctlError(62), ErrTimeout},
		"fine":          {ioctlError(0), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if err := nvmeStatus(0x371); !errors.Is(err, ErrTimeout) {
		t.Errorf("aborted by the host: %v", err)
	}
}

func FuzzOutcome(f *testing.F) {
	f.Add(uint16(0), uint16(8), uint8(2), []byte{0x72, 5, 0x20, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, host, driver uint16, status uint8, senseBuf []byte) {
		h := sgHeader{hostStatus: host, driverStatus: driver, status: status, senseWritten: uint8(len(senseBuf))}
		s, err := h.outcome(senseBuf)
		if err == nil && (host != 0 || (status != 0 && (status != statusChk || s.key > keyRecovered))) {
			t.Errorf("host %x, status %x, sense % x passes", host, status, senseBuf)
		}
	})
}
