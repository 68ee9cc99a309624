package emul

import (
	"fmt"
	"strings"
)

// Spec is all that one emulator serves.
type Spec struct {
	Disks      []Disk      `json:"disks,omitempty"`
	Enclosures []Enclosure `json:"enclosures,omitempty"`
}

// Disk describes a SATA disk.
type Disk struct {
	Name string `json:"name"`
	// Host groups devices on one SCSI host; empty: a host of its own. A host that
	// recovers from the errors of one of its devices stops the others meanwhile.
	Host     string `json:"host,omitempty"`
	Serial   string `json:"serial"`
	Model    string `json:"model"`
	Firmware string `json:"firmware"`
	WWN      uint64 `json:"wwn"` // NAA 5h
	Size     uint64 `json:"size"`
	RPM      int    `json:"rpm,omitempty"` // 0 and 1: solid state
	// Block is the logical block, 512 (also if 0) or 4096; PhysicalBlock is the same
	// unless it is given.
	Block         int    `json:"block,omitempty"`
	PhysicalBlock int    `json:"physicalBlock,omitempty"`
	File          string `json:"file,omitempty"` // keeps the data; empty: memory
	// FixedSense is the other value of D_SENSE: errors, and registers with them, come
	// back in fixed format (SAT-4 12.2.2).
	FixedSense bool `json:"fixedSense,omitempty"`

	Attributes []Attribute   `json:"attributes,omitempty"`
	Failed     bool          `json:"failed,omitempty"` // SMART RETURN STATUS
	Errors     []LoggedError `json:"errors,omitempty"` // oldest first
	// ErrorCount is how many errors there were in all the drive's life; 0: as many as
	// Errors has.
	ErrorCount int         `json:"errorCount,omitempty"`
	SelfTests  []SelfTest  `json:"selfTests,omitempty"` // oldest first
	Statistics []Statistic `json:"statistics,omitempty"`
	// SelfTestSeconds is how long a self-test runs; 0: it is over at once.
	SelfTestSeconds int   `json:"selfTestSeconds,omitempty"`
	Power           Power `json:"power,omitempty"` // empty: active
	// Reallocate lets a write mend an unreadable sector and count it in attribute 5.
	Reallocate bool `json:"reallocate,omitempty"`
}

// Attribute is one line of the SMART table.
type Attribute struct {
	ID        byte   `json:"id"`
	Flags     uint16 `json:"flags"` // bit 0: pre-failure
	Value     byte   `json:"value"`
	Worst     byte   `json:"worst"`
	Threshold byte   `json:"threshold"`
	Raw       uint64 `json:"raw"` // 48 bits
}

// LoggedError is one entry of the error log, oldest first in a description.
type LoggedError struct {
	Hours   uint16 `json:"hours"`
	Error   byte   `json:"error"`  // ERROR field: 40h is unreadable data
	Status  byte   `json:"status"` // STATUS field, 51h as a rule
	LBA     uint64 `json:"lba"`
	Count   uint16 `json:"count"`
	Command byte   `json:"command"` // that failed, 25h is READ DMA EXT
}

// SelfTest is one entry of the self-test log.
type SelfTest struct {
	Kind   byte   `json:"kind"`   // 1 short, 2 long, 4 selective (ACS-4 7.44.4)
	Status byte   `json:"status"` // self-test execution status, 0 passed, 7 read failure
	Hours  uint16 `json:"hours"`
	LBA    uint64 `json:"lba,omitempty"` // where it failed
}

// Statistic is one entry of the device statistics log (ACS-4 9.5).
type Statistic struct {
	Page       byte   `json:"page"`
	Offset     uint16 `json:"offset"`
	Value      int64  `json:"value"`
	Normalized bool   `json:"normalized,omitempty"`
}

// Power is what CHECK POWER MODE tells.
type Power string

// The power modes of ACS-4 4.16.
const (
	Active  Power = "active"
	Idle    Power = "idle"
	Standby Power = "standby"
)

// Enclosure describes a SES enclosure with one kind of element, array device slots.
type Enclosure struct {
	Name      string `json:"name"`
	Host      string `json:"host,omitempty"`
	Vendor    string `json:"vendor,omitempty"`  // empty: DRIVEBAY
	Product   string `json:"product,omitempty"` // empty: EMULATED SHELF
	LogicalID uint64 `json:"logicalId"`
	Slots     []Slot `json:"slots"`
}

// Slot is one bay.
type Slot struct {
	Name string `json:"name"`
	// Address is the SAS address of the drive in it; 0: the slot has no additional
	// element status.
	Address uint64 `json:"address,omitempty"`
	// Status is the element status code (SES-3 table 63): 1 OK, 2 critical, 5 not
	// installed; 0: OK.
	Status  byte `json:"status,omitempty"`
	Sensed  bool `json:"sensed,omitempty"`  // the enclosure itself senses a fault
	Removed bool `json:"removed,omitempty"` // not installed, swapped
}

// Validate finds what no device could be.
func (s Spec) Validate() error {
	names := map[string]bool{}
	for _, d := range s.Disks {
		if err := d.validate(); err != nil {
			return fmt.Errorf("disk %q: %w", d.Name, err)
		}
		names[d.Name] = true
	}
	for _, e := range s.Enclosures {
		if err := e.validate(); err != nil {
			return fmt.Errorf("enclosure %q: %w", e.Name, err)
		}
		names[e.Name] = true
	}
	if len(names) != len(s.Disks)+len(s.Enclosures) {
		return fmt.Errorf("two devices have the same name")
	}
	return nil
}

func (d Disk) validate() error {
	const pageLog = 512
	switch {
	case !nameable(d.Name):
		return fmt.Errorf("a name has letters, digits and - only")
	case d.block() != 512 && d.block() != 4096:
		return fmt.Errorf("logical block of %d bytes", d.Block)
	case d.physical() < d.block() || d.physical()&(d.physical()-1) != 0:
		return fmt.Errorf("physical block of %d bytes", d.PhysicalBlock)
	case d.Size == 0 || d.Size%uint64(d.physical()) != 0:
		return fmt.Errorf("size of %d bytes", d.Size)
	case d.WWN>>60 != 5:
		return fmt.Errorf("the WWN %016x is not of NAA 5", d.WWN)
	case len(d.Serial) > 20 || len(d.Firmware) > 8 || len(d.Model) > 40 || d.Model == "":
		return fmt.Errorf("serial, firmware and model have 20, 8 and 40 characters at most")
	case len(d.Attributes) > 30:
		return fmt.Errorf("%d attributes, 30 fit", len(d.Attributes))
	case d.Power != "" && !d.Power.known():
		return fmt.Errorf("power mode %q", d.Power)
	}
	for _, s := range d.Statistics {
		if s.Page < 1 || s.Page > 7 || s.Offset < 8 || s.Offset%8 != 0 || s.Offset > pageLog-8 {
			return fmt.Errorf("statistic %d/%d is nowhere in the log", s.Page, s.Offset)
		}
	}
	return nil
}

func (e Enclosure) validate() error {
	if !nameable(e.Name) {
		return fmt.Errorf("a name has letters, digits and - only")
	}
	if len(e.Slots) == 0 || len(e.Slots) > 255 {
		return fmt.Errorf("%d slots", len(e.Slots))
	}
	return nil
}

// nameable keeps names fit for a folder of configfs and a line of its control file.
func nameable(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

func (d Disk) block() int {
	if d.Block == 0 {
		return 512
	}
	return d.Block
}

func (d Disk) physical() int {
	if d.PhysicalBlock == 0 {
		return d.block()
	}
	return d.PhysicalBlock
}

func (d Disk) blocks() uint64 { return d.Size / uint64(d.block()) }

func (d Disk) solid() bool { return d.RPM <= 1 }

func (p Power) known() bool { return p == Active || p == Idle || p == Standby }
