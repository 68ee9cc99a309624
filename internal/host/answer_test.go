package host

import (
	"bytes"
	"errors"
	"testing"
)

// Sense data as kernels hand it back for ATA commands.
func TestATAAnswers(t *testing.T) {
	// libata of Linux 6.1, READ LOG EXT that the drive aborts: error 04h and status
	// 41h stand at bytes 8 and 9.
	oldAbort := []byte{0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0x04, 0x41, 0, 1, 0, 0, 0, 0, 0, 0}
	newAbort := []byte{0x70, 0, 0x0b, 0x04, 0x51, 0, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	described := []byte{0x72, 0x0b, 0, 0, 0, 0, 0, 14, 9, 12, 0, 0x04, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x51}
	medium := []byte{0x72, 0x03, 0x11, 0x04, 0, 0, 0, 14, 9, 12, 0, 0x40, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x51}
	fault := []byte{0x70, 0, 0x0b, 0x04, 0x71, 0, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	silent := []byte{0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	status := []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 0, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0x50}
	idle := []byte{0xf0, 0, 1, 0, 0x50, 0x40, 0xff, 10, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0} // a USB bridge, fixed format
	unnamed := errors.New("an error without a name of ours")
	for _, c := range []struct {
		name  string
		page  Page
		sense []byte
		data  []byte
		want  []byte
		err   error
	}{
		{"aborted, old libata", ATALogDirectory, oldAbort, nil, nil, ErrUnsupported},
		{"aborted, new libata", ATALogDirectory, newAbort, nil, nil, ErrUnsupported},
		{"aborted, described", ATALogDirectory, described, nil, nil, ErrUnsupported},
		{"uncorrectable", ATALogDirectory, medium, nil, nil, unnamed},
		{"device fault", ATALogDirectory, fault, nil, nil, unnamed},
		{"failed without a word", ATALogDirectory, silent, nil, nil, unnamed},
		{"short", ATAIdentify, nil, make([]byte, 100), nil, unnamed},
		{"whole", ATAIdentify, nil, make([]byte, 512), make([]byte, 512), nil},
		{"status", ATASmartStatus, status, nil, []byte{0x4f, 0xc2}, nil},
		{"status without registers", ATASmartStatus, nil, nil, nil, ErrUnsupported},
		{"status aborted", ATASmartStatus, described, nil, nil, ErrUnsupported},
		{"power mode", ATAPowerMode, idle, nil, []byte{0xff}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sense
			var err error
			if c.sense != nil {
				s, _ = parseSense(c.sense)
				err = s.err()
			}
			got, err := ataCommands[c.page].answer(c.data, s, err)
			if !bytes.Equal(got, c.want) {
				t.Errorf("% x, want % x", got, c.want)
			}
			if c.err == unnamed {
				if err == nil || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrStandby) {
					t.Errorf("%v", err)
				}
			} else if !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
		})
	}
}
