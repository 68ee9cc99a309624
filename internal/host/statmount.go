package host

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listmount(2) and statmount(2) return the mount table without the kernel writing it as text. The
// numbers are those of include/uapi/linux/mount.h. The calls are used where supported_mask has every
// field needed here (Linux 6.17); before that, an empty source and an unknown one look the same.
const (
	statSBBasic   = 0x001
	statMntBasic  = 0x002
	statMntRoot   = 0x008
	statMntPoint  = 0x010
	statFSType    = 0x020
	statMntOpts   = 0x080
	statFSSubtype = 0x100
	statSBSource  = 0x200
	statSupported = 0x1000
	statWanted    = statSBBasic | statMntBasic | statMntRoot | statMntPoint | statFSType | statMntOpts | statFSSubtype | statSBSource

	listRoot = ^uint64(0) // LSMT_ROOT: all mounts of our namespace
)

// statmountReply is struct statmount up to the strings. The uint32 field of a string holds its offset
// there.
type statmountReply struct {
	size, opts        uint32
	mask              uint64
	major, minor      uint32
	magic             uint64
	sbFlags, fsType   uint32
	id, parent        uint64
	oldID, oldParent  uint32 // the IDs of mountinfo
	attr              uint64
	propagation, peer uint64
	master, from      uint64
	root, point       uint32
	namespace         uint64
	fsSubtype, source uint32
	optNum, optArray  uint32
	secNum, secArray  uint32
	supported         uint64
	_                 [45]uint64
}

// mountRequest is struct mnt_id_req, version 0.
type mountRequest struct {
	size, _   uint32
	id, param uint64
}

const mountRequestSize = uint32(unsafe.Sizeof(mountRequest{}))

// errIncomplete: the system calls of this kernel lack fields.
var errIncomplete = errors.New("statmount returns too few fields")

// mountsByCall returns the mounts of our own namespace below our own root.
func mountsByCall() ([]Mount, error) {
	ids, err := listMounts()
	if err != nil {
		return nil, fmt.Errorf("listmount: %w", err)
	}
	buf := make([]byte, 64<<10)
	out := make([]Mount, 0, len(ids))
	for _, id := range ids {
		reply, err := statMount(id, &buf)
		switch {
		case errors.Is(err, unix.ENOENT): // unmounted meanwhile, or not below our root
			continue
		case err != nil:
			return nil, fmt.Errorf("statmount of %d: %w", id, err)
		case reply.supported&statWanted != statWanted:
			return nil, errIncomplete
		}
		if m, ok := reply.mount(buf); ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// listMounts lists the mount IDs in batches: each batch starts after the last ID before it.
func listMounts() ([]uint64, error) {
	var all []uint64
	round := make([]uint64, 1024)
	for {
		req := mountRequest{size: mountRequestSize, id: listRoot}
		if len(all) > 0 {
			req.param = all[len(all)-1]
		}
		n, _, errno := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&req)), uintptr(unsafe.Pointer(&round[0])), uintptr(len(round)), 0, 0, 0)
		if errno != 0 {
			return nil, errno
		}
		all = append(all, round[:n]...)
		if int(n) < len(round) {
			return all, nil
		}
	}
}

// statMount returns one mount; it enlarges buf when the strings need it.
func statMount(id uint64, buf *[]byte) (statmountReply, error) {
	for {
		req := mountRequest{size: mountRequestSize, id: id, param: statWanted | statSupported}
		_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&req)), uintptr(unsafe.Pointer(&(*buf)[0])), uintptr(len(*buf)), 0, 0, 0)
		switch {
		case errno == unix.EOVERFLOW && len(*buf) < MaxFile:
			*buf = make([]byte, 4*len(*buf))
		case errno != 0:
			return statmountReply{}, errno
		default:
			return *(*statmountReply)(unsafe.Pointer(&(*buf)[0])), nil
		}
	}
}

// mount converts the reply to the form of mountinfo.
func (r *statmountReply) mount(buf []byte) (Mount, bool) {
	if r.mask&(statMntBasic|statSBBasic|statMntPoint) != statMntBasic|statSBBasic|statMntPoint {
		return Mount{}, false // not reachable from our root
	}
	text := func(bit uint64, at uint32) string {
		from := int(unsafe.Sizeof(*r)) + int(at)
		if r.mask&bit == 0 || from >= len(buf) {
			return ""
		}
		s, _, _ := bytes.Cut(buf[from:], []byte{0})
		return string(s)
	}
	fs := text(statFSType, r.fsType)
	if sub := text(statFSSubtype, r.fsSubtype); sub != "" {
		fs += "." + sub
	}
	source := text(statSBSource, r.source)
	if source == "" {
		source = "none" // as in mountinfo
	}
	opts := append(r.mountOptions(), r.superOptions()...)
	if own := text(statMntOpts, r.opts); own != "" {
		opts = append(opts, own)
	}
	return Mount{
		ID: int(r.oldID), DevNum: fmt.Sprintf("%d:%d", r.major, r.minor), Root: text(statMntRoot, r.root),
		Target: text(statMntPoint, r.point), FS: fs, Source: source, Opts: strings.Join(opts, ","),
	}, true
}

type flagName struct {
	mask, value uint64
	name        string
}

// mountFlags names the bits of MOUNT_ATTR_*, in the order of mountinfo (fs/proc_namespace.c).
var mountFlags = []flagName{
	{0x02, 0x02, "nosuid"}, {0x04, 0x04, "nodev"}, {0x08, 0x08, "noexec"}, {0x70, 0x10, "noatime"},
	{0x80, 0x80, "nodiratime"}, {0x70, 0x00, "relatime"}, {0x200000, 0x200000, "nosymfollow"}, {0x100000, 0x100000, "idmapped"},
}

// superFlags names SB_SYNCHRONOUS, SB_DIRSYNC and SB_LAZYTIME.
var superFlags = []flagName{{1 << 4, 1 << 4, "sync"}, {1 << 7, 1 << 7, "dirsync"}, {1 << 25, 1 << 25, "lazytime"}}

func (r *statmountReply) mountOptions() []string { return optionNames(r.attr, mountFlags) }
func (r *statmountReply) superOptions() []string { return optionNames(uint64(r.sbFlags), superFlags) }

// optionNames returns the names of flags; bit 0 is read-only in both sets.
func optionNames(flags uint64, names []flagName) []string {
	out := []string{"rw"}
	if flags&1 != 0 {
		out[0] = "ro"
	}
	for _, f := range names {
		if flags&f.mask == f.value {
			out = append(out, f.name)
		}
	}
	return out
}

// samePlaceAsInit reports whether pid 1 has the mounts that our process has: the same namespace and
// the same root. It returns false without permission to look.
func samePlaceAsInit() bool {
	for _, pair := range [][2]string{{"/proc/1/ns/mnt", "/proc/self/ns/mnt"}, {"/proc/1/root", "/"}} {
		var a, b unix.Stat_t
		if unix.Stat(pair[0], &a) != nil || unix.Stat(pair[1], &b) != nil || a.Dev != b.Dev || a.Ino != b.Ino {
			return false
		}
	}
	return true
}
