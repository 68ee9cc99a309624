package host

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes are the options that belong to one mount and not to its filesystem,
// by their names of mount(8). An empty bit is what is so anyway.
var attributes = map[string]int{
	"nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC,
	"nodiratime": unix.MOUNT_ATTR_NODIRATIME, "nosymfollow": unix.MOUNT_ATTR_NOSYMFOLLOW,
	"suid": 0, "dev": 0, "exec": 0, "diratime": 0, "symfollow": 0, "defaults": 0, "rw": 0,
}

// times are the three of which a mount has one (MOUNT_ATTR__ATIME); the last that
// is named holds.
var times = map[string]int{
	"relatime": unix.MOUNT_ATTR_RELATIME, "noatime": unix.MOUNT_ATTR_NOATIME, "strictatime": unix.MOUNT_ATTR_STRICTATIME, "atime": unix.MOUNT_ATTR_RELATIME,
}

// ofPrograms are for those who mount at boot, not for the kernel.
var ofPrograms = []string{"auto", "noauto", "nofail", "_netdev"}

type options struct {
	attributes int
	ofFS       []string
}

// sortOptions tells apart who is to be told an option: the mount, the filesystem
// or nobody. A read-only mount is read-only in both: the filesystem then writes
// nothing of its own either, but for what its journal still owes.
func sortOptions(list []string, readOnly bool) options {
	var o options
	time := 0
	for _, name := range list {
		bit, isAttribute := attributes[name]
		atime, isTime := times[name]
		switch {
		case name == "", slices.Contains(ofPrograms, name), strings.HasPrefix(name, "x-"):
		case name == "ro":
			readOnly = true
		case isAttribute:
			o.attributes |= bit
		case isTime:
			time = atime
		default:
			o.ofFS = append(o.ofFS, name)
		}
	}
	o.attributes |= time
	if readOnly {
		o.attributes |= unix.MOUNT_ATTR_RDONLY
		o.ofFS = append(o.ofFS, "ro")
	}
	return o
}
