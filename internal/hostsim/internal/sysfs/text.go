package sysfs

import (
	"fmt"
	"strings"
)

// Texts of sysfs and of the udev database.

func Bool(on bool) string {
	if on {
		return "1\n"
	}
	return "0\n"
}

// DevUevent returns the beginning of a block device's uevent file.
func DevUevent(dev, name, devtype string) string {
	major, minor, _ := strings.Cut(dev, ":")
	return fmt.Sprintf("MAJOR=%s\nMINOR=%s\nDEVNAME=%s\nDEVTYPE=%s\n", major, minor, name, devtype)
}

const UdevEnd = "\nI:5265654\nG:systemd\nQ:systemd\nV:1\n"

// Word replaces characters that udev replaces in a property or a link.
func Word(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "/", " ")), "_") }

// Letters returns the kernel's name of disk n: sda ... sdz, sdaa ... (drivers/scsi/sd.c).
func Letters(prefix string, n int) string {
	name := ""
	for n++; n > 0; n = (n - 1) / 26 {
		name = string(rune('a'+(n-1)%26)) + name
	}
	return prefix + name
}

// SDNumber returns the device number of a partition of SCSI disk n, 0 for the whole disk
// (Documentation/admin-guide/devices.txt: majors 8, 65 to 71, 128 to 135; disks beyond use the first
// major again, with higher minors).
func SDNumber(n, part int) string {
	majors := [16]int{8, 65, 66, 67, 68, 69, 70, 71, 128, 129, 130, 131, 132, 133, 134, 135}
	return fmt.Sprintf("%d:%d", majors[n>>4&15], n>>8<<8|n&15<<4|part)
}
