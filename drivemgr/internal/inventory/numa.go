package inventory

import (
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// numaNodes are the nodes of the controllers of one listing: many drives have one controller.
type numaNodes struct {
	s    *sysfs.Reader
	read map[string]*int // by the path of the PCI function
}

// of returns the node of the controller of a device, and nil where the kernel names none: it writes -1 on
// a machine with one node (drivers/pci/pci-sysfs.c, numa_node_show).
func (n numaNodes) of(device string) *int {
	pci := pciFunction(device)
	if pci == "" {
		return nil
	}
	node, known := n.read[pci]
	if !known {
		if i, err := strconv.Atoi(n.s.Text(pci + "/numa_node")); err == nil && i >= 0 {
			node = &i
		}
		n.read[pci] = node
	}
	return node
}

// pciFunction returns the path of the PCI function that is nearest to a device.
func pciFunction(device string) string {
	for end := len(device); end > 0; {
		start := strings.LastIndexByte(device[:end], '/')
		if isPCI(device[start+1 : end]) {
			return device[:end]
		}
		end = start
	}
	return ""
}

// isPCI reports whether a name is the address of a PCI function, such as "0000:3b:00.0"; the domain may be
// longer than four digits.
func isPCI(name string) bool {
	const end = len(":3b:00.0")
	if len(name) < 4+end || strings.Trim(name, "0123456789abcdef:.") != "" {
		return false
	}
	tail := name[len(name)-end:]
	return tail[0] == ':' && tail[3] == ':' && tail[6] == '.' && !strings.ContainsAny(name[:len(name)-end], ":.")
}
