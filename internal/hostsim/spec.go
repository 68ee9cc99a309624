package hostsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Spec describes a machine. Unset numbers get the usual values for the kind of drive.
type Spec struct {
	Machine    string      `yaml:"machine"`
	Claim      string      `yaml:"claim"`   // selectors of the drives that may be used for volumes
	Without    []string    `yaml:"without"` // programs that are not installed: lvm, mkfs.xfs ...; dm-crypt: missing in the kernel; udev: its database is missing, as in a container
	Enclosures []Enclosure `yaml:"enclosures"`
	Drives     []Group     `yaml:"drives"`
	Script     []Step      `yaml:"script"`
}

// Enclosure is a row of bays.
type Enclosure struct {
	Name  string        `yaml:"name"`
	Kind  EnclosureKind `yaml:"kind"`
	Bays  int           `yaml:"bays"`
	First int           `yaml:"first"` // number of the first bay
	NPEM  bool          `yaml:"npem"`  // the ports of PCI slots have lights, as LED devices
}

// EnclosureKind is what the bays are wired to.
type EnclosureKind string

const (
	EnclosureSES EnclosureKind = "ses" // SAS expander with an enclosure processor: SAS and SATA drives
	EnclosurePCI EnclosureKind = "pci" // hot-plug PCI Express slots: NVMe drives
)

// Group is one or more drives of a kind. With Bays there is one in each of the bays; with Count they
// have no bay (inside the case).
type Group struct {
	Bays      string `yaml:"bays"` // "3", "0-7", "0-3,8"
	Enclosure string `yaml:"enclosure"`
	Count     int    `yaml:"count"`
	Kind      Kind   `yaml:"kind"`
	Vendor    string `yaml:"vendor"`
	Model     string `yaml:"model"`
	Size      string `yaml:"size"`
	Block     int    `yaml:"block"` // logical block size, 512 or 4096
	Firmware  string `yaml:"firmware"`
	// Serial is a pattern: {n} is the drive's number in the machine, four digits.
	Serial  string `yaml:"serial"`
	Paths   int    `yaml:"paths"` // 2: dual-ported, the kernel has two paths
	Content string `yaml:"content"`
	// System marks the drive that the machine boots from; two of them are a mirror.
	System   bool          `yaml:"system"`
	LongTest time.Duration `yaml:"long_test"` // duration of a long self-test
	Age      Age           `yaml:"age"`
}

// Age is the wear and the history of a drive.
type Age struct {
	PowerOnHours    uint64 `yaml:"power_on_hours"`
	PowerCycles     uint64 `yaml:"power_cycles"`
	Temperature     int    `yaml:"temperature"`
	Written         string `yaml:"written"` // "1.2PB"
	PercentageUsed  int    `yaml:"percentage_used"`
	Reallocated     uint64 `yaml:"reallocated"` // grown defects of a SAS drive
	Pending         uint64 `yaml:"pending"`
	Uncorrectable   uint64 `yaml:"uncorrectable"` // uncorrectable errors
	CRCErrors       uint64 `yaml:"crc_errors"`
	MediaErrors     uint64 `yaml:"media_errors"` // NVMe
	Spare           int    `yaml:"spare"`        // percent of spare blocks left; 0: 100
	CriticalWarning uint8  `yaml:"critical_warning"`
	Failed          bool   `yaml:"failed"` // the drive's own verdict
}

// Step is a fault at a time after the start of the machine.
type Step struct {
	After time.Duration `yaml:"after"`
	Fault `yaml:",inline"`
}

// Load reads a machine from YAML and starts it.
func Load(text []byte, opts ...Option) (*Machine, error) {
	var s Spec
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("simulated machine: the description is empty")
		}
		return nil, fmt.Errorf("simulated machine: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(Spec)); !errors.Is(err, io.EOF) {
		return nil, errors.New("simulated machine: more than one YAML document")
	}
	return New(s, opts...)
}

// LoadFile reads a machine from a YAML file and starts it.
func LoadFile(path string, opts ...Option) (*Machine, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("simulated machine: %w", err)
	}
	m, err := Load(text, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
