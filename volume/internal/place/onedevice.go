package place

import (
	"regexp"

	"github.com/drivebay/drivebay"
)

// deviceOf matches the folder of the SCSI target or NVMe controller above a drive in sysfs.
var deviceOf = regexp.MustCompile(`^.*/(target[0-9:]+|nvme\d+|nvme-subsys\d+)/`)

// OneDevice reports whether two drives are units of one device: namespaces of an SSD, or the logical units of a disk with two
// actuators. They have one serial, and fail and are pulled together. A virtual controller shows different disks as units of
// one target: those have different serials.
func OneDevice(a, b *drivebay.Drive) bool {
	if a.Serial == "" || a.Serial != b.Serial || len(a.Paths) == 0 || len(b.Paths) == 0 {
		return false
	}
	at := deviceOf.FindString(a.Paths[0].SysPath)
	return at != "" && at == deviceOf.FindString(b.Paths[0].SysPath)
}
