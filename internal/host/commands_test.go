package host

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"
)

// The structures must have the kernel's sizes, or the kernel refuses them (or
// worse, does not).
func TestKernelStructures(t *testing.T) {
	if n := unsafe.Sizeof(sgHeader{}); n != 88 {
		t.Errorf("sg_io_hdr has %d bytes, want 88", n)
	}
	if n := unsafe.Sizeof(nvmeCommand{}); n != 72 {
		t.Errorf("nvme_passthru_cmd has %d bytes, want 72", n)
	}
}

// The bytes are those of SAT-4 12.2.3 with the taskfiles of ACS-4; CDBs are the
// whole truth of what is asked of a drive, so each is spelt out.
func TestATACommands(t *testing.T) {
	want := map[Page][]byte{
		ATAPowerMode:       {0x85, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0},
		ATAIdentify:        {0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0},
		ATASmartData:       {0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0x00, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATASmartThresholds: {0x85, 0x08, 0x0e, 0, 0xd1, 0, 1, 0, 0x01, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATASmartStatus:     {0x85, 0x06, 0x20, 0, 0xda, 0, 0, 0, 0x00, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATASummaryErrorLog: {0x85, 0x08, 0x0e, 0, 0xd5, 0, 1, 0, 0x01, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATASelfTestLog:     {0x85, 0x08, 0x0e, 0, 0xd5, 0, 1, 0, 0x06, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATASelectiveLog:    {0x85, 0x08, 0x0e, 0, 0xd5, 0, 1, 0, 0x09, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0},
		ATALogDirectory:    {0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x00, 0, 0, 0, 0, 0, 0x2f, 0},
		ATAExtErrorLog:     {0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x03, 0, 0, 0, 0, 0, 0x2f, 0},
		ATAExtSelfTestLog:  {0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x07, 0, 0, 0, 0, 0, 0x2f, 0},
	}
	if len(want) != len(ataCommands) {
		t.Errorf("%d commands, %d spelt out", len(ataCommands), len(want))
	}
	for page, bytesWanted := range want {
		if got := ataCommands[page].cdb(); !bytes.Equal(got, bytesWanted) {
			t.Errorf("%s:\n got % x\nwant % x", page, got, bytesWanted)
		}
	}
	if got, want := readLog(0x04, 5).cdb(), []byte{0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x04, 0, 0x05, 0, 0, 0, 0x2f, 0}; !bytes.Equal(got, want) {
		t.Errorf("device statistics page 5: % x", got)
	}
}

// A self-test runs in the background of the drive (off-line mode, background
// self-test): the captive ones, whose codes are these with a bit set, stop all I/O.
func TestSelfTestCommands(t *testing.T) {
	for kind, want := range map[SelfTestKind]struct{ ata, nvme, scsi byte }{
		SelfTestShort: {0x01, 0x1, 0x20}, SelfTestLong: {0x02, 0x2, 0x40}, SelfTestAbort: {0x7f, 0xf, 0x80},
	} {
		cdb := ataSelfTest(selfTestCode[FamilyATA][kind]).cdb()
		if spelt := []byte{0x85, 0x06, 0x20, 0, 0xd4, 0, 0, 0, want.ata, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0}; !bytes.Equal(cdb, spelt) {
			t.Errorf("ATA %s: % x, want % x", kind, cdb, spelt)
		}
		if got := selfTestCode[FamilyNVMe][kind]; got != want.nvme {
			t.Errorf("NVMe %s: %x, want %x", kind, got, want.nvme)
		}
		if got := sendDiagnostic(selfTestCode[FamilySCSI][kind]); !bytes.Equal(got, []byte{0x1d, want.scsi, 0, 0, 0, 0}) {
			t.Errorf("SCSI %s: % x", kind, got)
		}
	}
}

// No command that can be sent as a page writes: the list of opcodes is closed.
func TestNothingWrites(t *testing.T) {
	reads := map[byte]bool{0xe5: true, 0xec: true, 0xb0: true, 0x2f: true}
	for page, c := range ataCommands {
		if !reads[c.command] || (c.command == 0xb0 && c.feature != 0xd0 && c.feature != 0xd1 && c.feature != 0xd5 && c.feature != 0xda) {
			t.Errorf("%s sends %02x/%02x", page, c.command, c.feature)
		}
	}
	for page, c := range nvmePages {
		if c.opcode != nvmeIdentify && c.opcode != nvmeGetLogPage {
			t.Errorf("%s sends %02x", page, c.opcode)
		}
	}
	scsi := map[byte]bool{0x12: true, 0x4d: true, 0x9e: true, 0xb7: true}
	for page, c := range scsiPages {
		if !scsi[c.cdb[0]] || (c.cdb[0] == 0x9e && c.cdb[1] != 0x10) {
			t.Errorf("%s sends % x", page, c.cdb)
		}
	}
}

func TestNVMeCommands(t *testing.T) {
	c := nvmePages[NVMeSmartLog].command(1, 512)
	if c.opcode != 0x02 || c.nsid != 0xffffffff || c.cdw10 != 0x007f0002 || c.cdw11 != 0 || c.dataLen != 512 {
		t.Errorf("smart log: %+v", c)
	}
	c = nvmePages[NVMeIdentifyNamespace].command(3, 4096)
	if c.opcode != 0x06 || c.nsid != 3 || c.cdw10 != 0 {
		t.Errorf("identify namespace: %+v", c)
	}
	// A failed command leaves a zeroed buffer that would read as a perfect drive.
	for status, want := range map[uint16]error{0: nil, 0x002: ErrUnsupported, 0x4002: ErrUnsupported, 0x109: ErrUnsupported} {
		if err := nvmeStatus(status); !errors.Is(err, want) {
			t.Errorf("status %03x: %v", status, err)
		}
	}
	if err := nvmeStatus(0x006); err == nil || errors.Is(err, ErrUnsupported) {
		t.Errorf("internal error: %v", err)
	}
}

func TestSense(t *testing.T) {
	fixed := func(key, asc, ascq byte) []byte {
		return []byte{0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0}
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"no sense", fixed(0, 0, 0), nil},
		{"recovered", fixed(1, 0x5d, 0), nil},
		{"invalid field", fixed(5, 0x24, 0), ErrUnsupported},
		{"stopped", fixed(2, 0x04, 0x02), ErrStandby},
		{"low power", fixed(2, 0x5e, 0x41), ErrStandby},
		{"no medium", fixed(2, 0x3a, 0), ErrGone},
		{"descriptor, illegal request", []byte{0x72, 5, 0x20, 0, 0, 0, 0, 0}, ErrUnsupported},
	} {
		s, ok := parseSense(c.b)
		if err := s.err(); !ok || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
	if s, _ := parseSense(fixed(3, 0x11, 0)); s.err() == nil {
		t.Error("a medium error is a success")
	}
	regs := []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 12, 0, 0, 0, 0xff, 0, 0, 0, 0xf4, 0, 0x2c, 0, 0x50}
	packed := []byte{0x70, 0, 1, 0x00, 0x50, 0, 0xff, 10, 0, 0, 0xf4, 0x2c, 0x00, 0x1d, 0, 0, 0, 0}
	for _, b := range [][]byte{regs, packed} {
		s, _ := parseSense(b)
		if r := s.ata; r == nil || r.lbaMid != 0xf4 || r.lbaHigh != 0x2c || r.count != 0xff || r.status != 0x50 {
			t.Errorf("registers of % x: %+v", b, r)
		}
	}
}

func FuzzSense(f *testing.F) {
	f.Add([]byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 12, 0, 0, 0, 0xff, 0, 0, 0, 0xf4, 0, 0x2c, 0, 0x50})
	f.Add([]byte{0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseSense(b); ok {
			_ = s.err()
		}
	})
}
