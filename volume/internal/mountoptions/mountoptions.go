package mountoptions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// mountOptions lists the options that a class may have; all others are refused. An option can read
// another device (journal_dev, logdev, device), panic the machine (errors=panic) or skip the journal
// (norecovery). Options of mount(8) that are no property of a mount (bind, remount, loop) are not
// allowed.
//
// The engine always adds nodev: a volume holds data, and a device node on it would bypass every
// permission. Set-uid programs stay possible, as everywhere in Kubernetes: images are unpacked onto
// volumes, and the runtime has a switch for each container (no_new_privs); a class can ask for nosuid
// and noexec. The engine does not add discard: it makes each delete wait for the drive, and an
// occasional trim does the same.
var mountOptions = map[string][]string{
	"": words("defaults rw ro atime noatime relatime strictatime diratime nodiratime lazytime nolazytime sync async dirsync",
		"suid nosuid exec noexec nodev nosymfollow discard nodiscard"),
	"ext4": words("data=ordered data=journal data=writeback commit= barrier nobarrier barrier= delalloc nodelalloc auto_da_alloc noauto_da_alloc",
		"stripe= inode_readahead_blks= journal_async_commit max_batch_time= min_batch_time= errors=remount-ro quota noquota usrquota grpquota prjquota user_xattr acl"),
	"xfs": words("allocsize= inode64 inode32 largeio nolargeio logbufs= logbsize= swalloc wsync attr2 noquota quota uquota usrquota gquota grpquota pquota prjquota"),
	"btrfs": words("compress compress= compress-force compress-force= autodefrag noautodefrag ssd nossd ssd_spread commit= datacow nodatacow",
		"datasum nodatasum discard=async discard=sync flushoncommit max_inline= thread_pool= space_cache=v2 user_subvol_rm_allowed acl noacl"),
}

func words(lines ...string) []string { return strings.Fields(strings.Join(lines, " ")) }

// Check refuses options that are not allowed. Its error gives only their position: options may
// be secrets.
func Check(fs string, options []string) error {
	if _, err := Context(options); err != nil {
		return err
	}
	for i, o := range options {
		if strings.HasPrefix(o, ContextKey) {
			continue
		}
		name, _, hasValue := strings.Cut(o, "=")
		known := func(list []string) bool {
			return slices.Contains(list, o) || hasValue && slices.Contains(list, name+"=")
		}
		if strings.ContainsAny(o, ", \t\n\x00") || !known(mountOptions[""]) && !known(mountOptions[fs]) {
			return fmt.Errorf("mount option %d of %d: %w: this mount option is not allowed for %s", i+1, len(options), drivebay.ErrInvalid, fs)
		}
	}
	return nil
}

// ContextKey begins the mount option with which SELinux shows all files of a mount under one label
// (mount(8), "context="). The kubelet passes it for volumes of one node, with the label in double
// quotes: its level may have a comma (pkg/volume/util/util.go, AddSELinuxMountOption). The kernel
// takes it without them (security/selinux/hooks.c).
const ContextKey = "context="

// label matches a user, a role, a type and, where the policy has levels, a range of them
// (selinux(8)).
var label = regexp.MustCompile(`^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+(:[A-Za-z0-9_.,:-]+)?$`)

// Context returns the label to mount a volume with; "" for none.
func Context(options []string) (string, error) {
	context := ""
	for i, o := range options {
		value, is := strings.CutPrefix(o, ContextKey)
		if !is {
			continue
		}
		value = unquoted(value)
		if !label.MatchString(value) || context != "" && context != value {
			return "", fmt.Errorf("mount option %d of %d: %w: context= takes one SELinux label, user:role:type:level", i+1, len(options), drivebay.ErrInvalid)
		}
		context = value
	}
	return context, nil
}

func unquoted(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// Plain returns options in the form that the kernel takes.
func Plain(options []string) []string {
	out := slices.Clone(options)
	for i, o := range out {
		if value, is := strings.CutPrefix(o, ContextKey); is {
			out[i] = ContextKey + unquoted(value)
		}
	}
	return out
}

// SameContext refuses a label that differs from that of the stage: one mount of a device has one
// label for all.
func SameContext(staged drivebay.Publication, context string) error {
	if context == "" || staged.Flags == "" || staged.Context == context {
		return nil
	}
	if staged.Context == "" {
		return fmt.Errorf("%w: it is staged without an SELinux label, and the label %s is requested: unstage it first", drivebay.ErrBusy, context)
	}
	return fmt.Errorf("%w: it is staged with the SELinux label %s, and %s is requested: unstage it first", drivebay.ErrBusy, staged.Context, context)
}

// Own returns the options to mount the filesystem of a volume with.
func Own(v *drivebay.Volume, asked []string) []string {
	out := append(slices.Clone(asked), "nodev")
	switch {
	case v.FSType == "ext4": // the default of mkfs is to continue writing (ext4(5))
		out = append(out, "errors=remount-ro")
	case v.FSType == "xfs" && v.Source != (drivebay.Source{}):
		// A copy has the UUID of its origin, and the kernel mounts only one XFS with a UUID. With
		// nouuid the kernel neither checks nor remembers the UUID (fs/xfs/xfs_mount.c,
		// xfs_uuid_mount): origins need nothing.
		out = append(out, "nouuid")
	}
	return out
}

// Flags returns a checksum of options that tells different ones apart.
func Flags(options []string) string {
	set := map[string]bool{}
	for _, o := range options {
		set[o] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(set)), "\x00")))
	return hex.EncodeToString(sum[:8])
}
