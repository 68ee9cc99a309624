package pages

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// nvme encodes the pages of an NVMe drive.
type nvme struct{ *State }

var nvmePages = map[host.Page]func(nvme) []byte{
	host.NVMeIdentifyController: nvme.controller,
	host.NVMeIdentifyNamespace:  nvme.namespace,
	host.NVMeSmartLog:           nvme.smart,
	host.NVMeErrorLog:           nvme.errors,
	host.NVMeSelfTestLog:        nvme.selfTests,
}

// Temperature limits of the simulated NVMe drives, in kelvins.
const (
	zeroCelsius  = 273
	warningTemp  = 70 + zeroCelsius
	criticalTemp = 80 + zeroCelsius
)

// controller returns Identify Controller (NVM Express base 2.0, figure 275).
func (d nvme) controller() []byte {
	b := make([]byte, 4096)
	le.PutUint16(b, 0x144D)
	le.PutUint16(b[2:], 0x144D)
	copy(b[4:24], fmt.Sprintf("%-20s", d.Serial))
	copy(b[24:64], fmt.Sprintf("%-40s", d.Model))
	copy(b[64:72], fmt.Sprintf("%-8s", d.Firmware))
	copy(b[73:], []byte{0x38, 0x25, 0x00}) // company, lowest byte first
	if d.Paths > 1 {
		b[76] = 0x03 // multiple ports, multiple controllers
	}
	b[77] = 9
	le.PutUint32(b[80:], 0x00010400)
	le.PutUint16(b[256:], 0x0010) // optional admin commands: self-test
	b[260] = 0x16
	b[261] = 0x0E
	b[262] = nvmeErrorEntries - 1
	le.PutUint16(b[266:], warningTemp)
	le.PutUint16(b[268:], criticalTemp)
	le.PutUint64(b[280:], d.Size)
	le.PutUint16(b[316:], uint16(min(d.LongTest/time.Minute, 0xFFFF)))
	b[512], b[513] = 0x66, 0x44
	le.PutUint32(b[516:], 1)
	return b
}

// namespace returns Identify Namespace (NVM command set 1.0, figure 97).
func (d nvme) namespace() []byte {
	b := make([]byte, 4096)
	blocks := d.Size / d.Block
	le.PutUint64(b, blocks)
	le.PutUint64(b[8:], blocks)
	le.PutUint64(b[16:], blocks/3)
	b[25] = 1 // two formats: 512 and 4096 bytes
	if d.Block == 4096 {
		b[26] = 1
	}
	if d.Paths > 1 {
		b[30] = 1
	}
	if id, err := hex.DecodeString(d.Nguid()); err == nil {
		copy(b[104:120], id)
	}
	b[128+2], b[132+2] = 9, 12
	return b
}

// smart returns SMART / health information (NVM Express base 2.0, figure 207).
func (d nvme) smart() []byte {
	b := make([]byte, 512)
	const spareThreshold = 10
	a, kelvin := d.Age, uint16(d.Age.Temperature+zeroCelsius)
	b[0] = a.CriticalWarning
	if a.Spare < spareThreshold {
		b[0] |= 1 << 0
	}
	if kelvin >= warningTemp {
		b[0] |= 1 << 1
	}
	if a.Failed {
		b[0] |= 1 << 2
	}
	le.PutUint16(b[1:], kelvin)
	b[3], b[4], b[5] = byte(a.Spare), spareThreshold, byte(a.PercentageUsed)
	units := (a.Written + 511999) / 512000
	for at, n := range map[int]uint64{32: units / 2, 48: units, 64: units * 8, 80: units * 12, 96: d.Hours() / 9, 112: a.PowerCycles, 128: d.Hours(), 144: a.PowerCycles / 4, 160: a.MediaErrors, 176: a.MediaErrors} {
		le.PutUint64(b[at:], n)
		if d.Spoilt.CountersMax {
			le.PutUint64(b[at:], math.MaxUint64)
			le.PutUint64(b[at+8:], math.MaxUint64)
		}
	}
	if d.Spoilt.CountersMax {
		b[5] = 255
	}
	le.PutUint16(b[200:], kelvin)
	return b
}

const nvmeErrorEntries = 64

// errors returns the error information log, newest first (figure 206).
func (d nvme) errors() []byte {
	b := make([]byte, 64*nvmeErrorEntries)
	n := d.Age.MediaErrors
	for i := range min(n, nvmeErrorEntries) {
		e := b[64*i:]
		le.PutUint64(e, n-i)
		le.PutUint16(e[8:], 1)
		le.PutUint16(e[12:], 0x281<<1) // unrecovered read error
		le.PutUint64(e[16:], FailingLBA+n-1-i)
		le.PutUint32(e[24:], 1)
	}
	return b
}

// selfTests returns the running self-test and the last 20 results of 28 bytes (figure 212).
func (d nvme) selfTests() []byte {
	b := make([]byte, 4+20*28)
	if d.Running != nil {
		b[0], b[1] = d.Running.kind, byte(d.Running.progress(d.Clock.Now()))
	}
	for i := range 20 {
		e := b[4+28*i:]
		if i >= len(d.Tests) {
			e[0] = 0x0F // not used
			continue
		}
		t := d.Tests[i]
		e[0] = t.Kind<<4 | t.Result
		le.PutUint64(e[4:], t.Hours)
		le.PutUint32(e[12:], 1)
		e[2] = 0x01 // the namespace is valid
		if t.Result == TestFailed {
			e[1], e[2] = 2, 0x0F // segment 2; address and status are valid, too
			le.PutUint64(e[16:], t.Lba)
			e[24], e[25] = 0x02, 0x81
		}
	}
	return b
}
