package sysfs

import (
	"regexp"
	"strings"
)

// UsableWWN returns a worldwide name that identifies a drive, else "": NAA, EUI, NGUID
// and UUID with a value. The kernel makes "nvme." and "t10." names from serial and model
// when a drive has none; bridges send all zeros or all ones, or a format digit and
// zeros.
func UsableWWN(wwid string) string {
	wwid = strings.ToLower(wwid)
	m := worldwide.FindStringSubmatch(wwid)
	if m == nil || strings.Trim(m[2], "0-") == "" || strings.Trim(m[2], "f-") == "" || (m[1] == "naa" && strings.Trim(m[2][1:], "0") == "") {
		return ""
	}
	return wwid
}

var worldwide = regexp.MustCompile(`^(naa|eui|uuid)\.([0-9a-f-]{8,64})$`)

// NVMePath matches the name of one path of a multipath NVMe namespace.
var NVMePath = regexp.MustCompile(`^nvme(\d+)c(\d+)n(\d+)$`)
