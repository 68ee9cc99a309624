// Package units tells which drives are units of one device.
package units

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// OfOneDevice reports whether two drives are units of one device: namespaces of an SSD, or the logical units of a disk with two
// actuators. They fail together and are pulled together.
func OfOneDevice(a, b *drivebay.Drive) bool {
	return slices.ContainsFunc(a.Paths, func(p drivebay.Path) bool {
		device := deviceOf(a, p.Address)
		return device != "" && slices.ContainsFunc(b.Paths, func(o drivebay.Path) bool { return deviceOf(b, o.Address) == device })
	})
}

// deviceOf returns the device at the end of a path: an NVMe controller, or a SCSI target (H:C:T of H:C:T:L) with the serial of the
// disk, because a virtual controller shows different disks as units of one target.
func deviceOf(d *drivebay.Drive, address string) string {
	target := address[:max(0, strings.LastIndex(address, ":"))]
	switch {
	case address != "" && d.Transport == drivebay.TransportNVMe:
		return "controller " + address
	case strings.Count(target, ":") == 2 && d.Serial != "":
		return "target " + target + " " + d.Serial
	}
	return ""
}
