package drivebay

import (
	"crypto/sha256"
	"fmt"
)

// TableGUID returns the GUID of the partition table that drivebay makes on a drive.
func TableGUID(drive string) string {
	b := sha256.Sum256([]byte("gpt\x00" + drive))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562, version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// PartitionPrefix begins the name of every partition that drivebay makes. PVPrefix begins
// the name of every partition that holds a physical volume.
const (
	PartitionPrefix = "drivebay-"
	PVPrefix        = PartitionPrefix + "pv-"
)
