package inventory

import (
	"regexp"
	"strconv"

	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// pciDevice matches the path of a device up to the PCI function nearest to it.
var pciDevice = regexp.MustCompile(`^.*/[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`)

// numaNode returns the node of the controller of a device, and nil where the kernel names none: it writes
// -1 on a machine with one node (drivers/pci/pci-sysfs.c, numa_node_show).
func numaNode(s *sysfs.Reader, path string) *int {
	pci := pciDevice.FindString(path)
	if pci == "" {
		return nil
	}
	n, err := strconv.Atoi(s.Text(pci + "/numa_node"))
	if err != nil || n < 0 {
		return nil
	}
	return &n
}
