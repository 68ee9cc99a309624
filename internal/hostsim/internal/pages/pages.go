package pages

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

// State is what the pages of a drive show, and its self-tests. The machine's lock guards it.
type State struct {
	Kind *model.Properties
	model.Identity
	Firmware string
	Size     uint64
	Block    uint64
	Paths    int
	LongTest time.Duration
	Age      model.Counters
	Asleep   bool
	Spoilt   Spoilt
	Clock    host.Clock

	Tests   []TestResult
	Running *runningTest
	Started int    // self-tests started
	Spans   []Span // of the last selective self-test, at most five
	span    uint16 // the one under test, or the one in which the test was aborted; 0 for none
}

// Spoilt holds what is wrong with the pages of a drive beyond its age.
type Spoilt struct {
	Garbage     bool
	ShortPages  bool
	BadChecksum bool
	CountersMax bool
	TestsFail   bool
}

// Answer returns a page; nil: the drive has no such page.
func (s *State) Answer(p host.Page) []byte {
	encode := s.encoder(p)
	if encode == nil {
		return nil
	}
	s.finishTest()
	return encode()
}

// encoder returns what encodes a page, nil without one.
func (s *State) encoder(p host.Page) func() []byte {
	switch family := s.Family(); {
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

func (s *State) Family() host.Family { return s.Kind.Family }

// Wwid returns the drive's name as the kernel writes it.
func (s *State) Wwid() string {
	switch {
	case s.Kind.Name == model.KindNVMe:
		return "eui." + s.Nguid()
	case s.WWN == 0:
		return fmt.Sprintf("t10.%-8s%-16s%s", s.Vendor, s.Model, s.Serial)
	}
	return fmt.Sprintf("naa.%016x", s.WWN)
}

// Nguid returns a namespace's 128-bit name: vendor extension, company, number.
func (s *State) Nguid() string {
	if s.WWN == 0 {
		return strings.Repeat("0", 32)
	}
	return fmt.Sprintf("%08x%016x%08x", s.WWN>>28&0xFFFFFFFF, 0x0025380000000000|s.WWN&0xFFFFFFFF, 1)
}

// Revision returns the four characters of firmware that SCSI has room for. A longer one of a SATA
// drive keeps its end (SAT-4, 8.1.2).
func (s *State) Revision() string {
	if s.Family() == host.FamilyATA && len(s.Firmware) > 4 {
		return s.Firmware[len(s.Firmware)-4:]
	}
	return s.Firmware
}

// Port returns the SAS address of a port of the drive.
func (s *State) Port(path int) string { return fmt.Sprintf("%016x", s.WWN+uint64(path)+1) }

// Hours returns the power-on hours so far.
func (s *State) Hours() uint64 {
	if s.Spoilt.CountersMax {
		return 1<<48 - 1
	}
	return s.Age.PowerOnHours + uint64(s.Clock.Now().Sub(s.Age.Born)/time.Hour)
}

// Spoil turns a correct page into what a drive with a fault returns.
func (f *Spoilt) Spoil(b []byte) []byte {
	switch {
	case f.Garbage:
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
	case f.ShortPages:
		b = b[:len(b)/3]
	case f.BadChecksum && len(b) >= 512:
		b[len(b)-1] ^= 0x55
	}
	return b
}

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)
