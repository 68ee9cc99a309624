package hostsim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// pageState is what the pages of a drive show, and its self-tests. The machine's lock guards it.
type pageState struct {
	kind *model.Properties
	model.Identity
	firmware string
	size     uint64
	block    uint64
	paths    int
	longTest time.Duration
	age      model.Counters
	asleep   bool
	spoilt   spoilt
	clock    host.Clock

	tests   []testResult
	running *runningTest
	started int // self-tests started
}

// spoilt holds what is wrong with the pages of a drive beyond its age.
type spoilt struct {
	garbage     bool
	shortPages  bool
	badChecksum bool
	countersMax bool
	testsFail   bool
}

// answer returns a page; nil: the drive has no such page.
func (s *pageState) answer(p host.Page) []byte {
	encode := s.encoder(p)
	if encode == nil {
		return nil
	}
	s.finishTest()
	return encode()
}

// encoder returns what encodes a page, nil without one.
func (s *pageState) encoder(p host.Page) func() []byte {
	switch family := s.family(); {
	case family == host.FamilyATA && ataPages[p] != nil:
		return func() []byte { return ataPages[p](ata{s}) }
	case family == host.FamilyNVMe && nvmePages[p] != nil:
		return func() []byte { return nvmePages[p](nvme{s}) }
	case family == host.FamilySCSI && scsiPages[p] != nil, family == host.FamilyATA && slices.Contains(translated, p):
		return func() []byte { return scsiPages[p](scsi{s}) }
	}
	return nil
}

// translated lists the pages that the translator (SAT) in front of every SATA drive answers.
var translated = []host.Page{host.SCSITestUnitReady, host.SCSIInquiry, host.SCSIVPDSupported, host.SCSIVPDSerial, host.SCSIVPDDeviceID, host.SCSIVPDATA, host.SCSIVPDBlockChar, host.SCSICapacity}

func (s *pageState) family() host.Family { return s.kind.Family }

// wwid returns the drive's name as the kernel writes it.
func (s *pageState) wwid() string {
	switch {
	case s.kind.Name == model.KindNVMe:
		return "eui." + s.nguid()
	case s.WWN == 0:
		return fmt.Sprintf("t10.%-8s%-16s%s", s.Vendor, s.Model, s.Serial)
	}
	return fmt.Sprintf("naa.%016x", s.WWN)
}

// nguid returns a namespace's 128-bit name: vendor extension, company, number.
func (s *pageState) nguid() string {
	if s.WWN == 0 {
		return strings.Repeat("0", 32)
	}
	return fmt.Sprintf("%08x%016x%08x", s.WWN>>28&0xFFFFFFFF, 0x0025380000000000|s.WWN&0xFFFFFFFF, 1)
}

// revision returns the four characters of firmware that SCSI has room for. A longer one of a SATA
// drive keeps its end (SAT-4, 8.1.2).
func (s *pageState) revision() string {
	if s.family() == host.FamilyATA && len(s.firmware) > 4 {
		return s.firmware[len(s.firmware)-4:]
	}
	return s.firmware
}

// port returns the SAS address of a port of the drive.
func (s *pageState) port(path int) string { return fmt.Sprintf("%016x", s.WWN+uint64(path)+1) }

// hours returns the power-on hours so far.
func (s *pageState) hours() uint64 {
	if s.spoilt.countersMax {
		return 1<<48 - 1
	}
	return s.age.PowerOnHours + uint64(s.clock.Now().Sub(s.age.Born)/time.Hour)
}

// spoil turns a correct page into what a drive with a fault returns.
func (f *spoilt) spoil(b []byte) []byte {
	switch {
	case f.garbage:
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
	case f.shortPages:
		b = b[:len(b)/3]
	case f.badChecksum && len(b) >= 512:
		b[len(b)-1] ^= 0x55
	}
	return b
}

var (
	ple = binary.LittleEndian
	pbe = binary.BigEndian
)
