package block

import (
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// Enclosure is a row of bays.
type Enclosure struct {
	Name  string              `yaml:"name"`
	Kind  model.EnclosureKind `yaml:"kind"`
	Bays  int                 `yaml:"bays"`
	First int                 `yaml:"first"` // number of the first bay
	NPEM  bool                `yaml:"npem"`  // the ports of PCI slots have lights, as LED devices
}

// Group is one or more drives of a kind. With Bays there is one in each of the bays; with Count they
// have no bay (inside the case).
type Group struct {
	Bays      string     `yaml:"bays"` // "3", "0-7", "0-3,8"
	Enclosure string     `yaml:"enclosure"`
	Count     int        `yaml:"count"`
	Kind      model.Kind `yaml:"kind"`
	Vendor    string     `yaml:"vendor"`
	Model     string     `yaml:"model"`
	Size      string     `yaml:"size"`
	Block     int        `yaml:"block"` // logical block size, 512 or 4096
	Firmware  string     `yaml:"firmware"`
	// Serial is a pattern: {n} is the drive's number in the machine, four digits.
	Serial  string `yaml:"serial"`
	Paths   int    `yaml:"paths"` // 2: dual-ported, the kernel has two paths
	Content string `yaml:"content"`
	// System marks the drive that the machine boots from; two of them are a mirror.
	System   bool          `yaml:"system"`
	LongTest time.Duration `yaml:"long_test"` // duration of a long self-test
	Age      model.Age     `yaml:"age"`
}
