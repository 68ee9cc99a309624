package hostsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/faults"
	"go.yaml.in/yaml/v3"
)

// Spec describes a machine. Unset numbers get the usual values for the kind of drive.
type Spec struct {
	Machine    string            `yaml:"machine"`
	Claim      string            `yaml:"claim"`   // selectors of the drives that may be used for volumes
	Without    []string          `yaml:"without"` // programs that are not installed: lvm, mkfs.xfs ...; dm-crypt: missing in the kernel; udev: its database is missing, as in a container
	Enclosures []block.Enclosure `yaml:"enclosures"`
	Drives     []block.Group     `yaml:"drives"`
	Script     []TimedFault      `yaml:"script"`
}

// TimedFault is a fault at a time after the start of the machine.
type TimedFault struct {
	After        time.Duration `yaml:"after"`
	faults.Fault `yaml:",inline"`
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
