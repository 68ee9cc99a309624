// Package mountoptions sorts the options of a mount.
package mountoptions

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

// Options are sorted options.
type Options struct {
	Attributes int      // of the mount: MOUNT_ATTR_*
	OfFS       []string // of the filesystem
}

// Sort splits options into those of the mount and those of the filesystem, and drops those for
// programs. A read-only mount is read-only in both: the filesystem then writes nothing by itself
// either, except to replay its journal.
func Sort(list []string, readOnly bool) Options {
	var o Options
	time := 0
	for _, name := range list {
		bit, isAttribute := attributes[name]
		atime, isTime := times[name]
		switch {
		case name == "", slices.Contains(ofPrograms, name), strings.HasPrefix(name, "x-"):
		case name == "ro":
			readOnly = true
		case isAttribute:
			o.Attributes |= bit
		case isTime:
			time = atime
		default:
			o.OfFS = append(o.OfFS, name)
		}
	}
	o.Attributes |= time
	if readOnly {
		o.Attributes |= unix.MOUNT_ATTR_RDONLY
		o.OfFS = append(o.OfFS, "ro")
	}
	return o
}
