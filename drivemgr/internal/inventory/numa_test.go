package inventory

import (
	"fmt"
	"testing"

	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestNUMANode: a drive has the node of its controller, also through an enclosure and below an NVMe
// subsystem, and none on a machine that names none.
func TestNUMANode(t *testing.T) {
	m, err := hostsim.Load([]byte("enclosures: [{name: f, kind: pci, bays: 8, first: 0}, {name: d, kind: ses, bays: 4, first: 8}]\n" +
		"drives: [{bays: 0, kind: nvme, serial: N0}, {bays: 5, kind: nvme, serial: N5}, {bays: 6, kind: nvme, serial: N6, paths: 2}, {bays: 8, kind: sas-hdd, serial: S8}, {bays: 9, kind: sata-hdd, serial: S9}, {count: 1, kind: usb, serial: U}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	nodes := map[string]string{}
	for _, d := range Observe(m, nil, Options{}).Drives {
		if nodes[d.Serial] = "none"; d.NUMANode != nil {
			nodes[d.Serial] = fmt.Sprint(*d.NUMANode)
		}
	}
	if is, want := fmt.Sprint(nodes), "map[N0:0 N5:1 N6:1 S8:0 S9:0 U:none]"; is != want {
		t.Errorf("%s, want %s", is, want)
	}
}
