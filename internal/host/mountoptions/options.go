package host

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes maps the mount(8) names of options that belong to one mount, not to its filesystem, to
// their bits. A bit of 0 is the default.
var attributes = map[string]int{
	"nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC,
	"nodiratime": unix.MOUNT_ATTR_NODIRATIME, "nosymfollow": unix.MOUNT_ATTR_NOSYMFOLLOW,
	"suid": 0, "dev": 0, "exec": 0, "diratime": 0, "symfollow": 0, "defaults": 0, "rw": 0,
}

// times holds the options of which a mount has one (MOUNT_ATTR__ATIME); the last one named applies.
var times = map[string]int{
	"relatime": unix.MOUNT_ATTR_RELATIME, "noatime": unix.MOUNT_ATTR_NOATIME, "strictatime": unix.MOUNT_ATTR_STRICTATIME, "atime": unix.MOUNT_ATTR_RELATIME,
}

// ofPrograms holds options for programs that mount at boot, not for the kernel.
var ofPrograms = []string{"auto", "noauto", "nofail", "_netdev"}

type options struct {
	attributes int
	ofFS       []string
}

// sortOptions splits options into those of the mount and those of the filesystem, and drops those for
// programs. A read-only mount is read-only in both: the filesystem then writes nothing by itself
// either, except to replay its journal.
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
