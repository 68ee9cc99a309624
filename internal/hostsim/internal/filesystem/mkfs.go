package filesystem

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// mkfs holds what the three programs share.
type mkfs struct {
	*program.Process
	content.Super
	force bool
	least uint64 // bytes
	shy   bool   // never on a device with content, unless forced
}

// called checks and sets the UUID and the label of the new filesystem.
func (k *mkfs) called(uuid, label string, longest int) error {
	if uuid == "" {
		k.UUID = newUUID()
	} else if id, ok := content.ParseUUID(uuid); ok {
		k.UUID = id
	} else {
		return fmt.Errorf("could not parse UUID: %s", uuid)
	}
	if len(label) > longest {
		return fmt.Errorf("label %q is longer than %d characters", label, longest)
	}
	k.Label = label
	return nil
}

func newUUID() (id [16]byte) {
	// It never fails (crypto/rand).
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0F|0x40, id[8]&0x3F|0x80 // version 4 (RFC 9562)
	return id
}

// make writes the filesystem. busy, full and failed are the program's messages for a device in use,
// with content, or with an error.
func (k *mkfs) make(name string, busy, full, failed string) int {
	dev := k.Device(name)
	code := 0
	err := dev.Do(k.Ctx, block.Access{Write: true, N: 1 << 20}, func() error {
		kind, _ := content.Recognize(dev.Read)
		switch {
		case dev.Busy():
			code = k.Fail(1, busy, name)
		case dev.Length() < k.least:
			code = k.Fail(1, "%s: %s: the device is too small, it has %d bytes", k.Process.Name, name, dev.Length())
		case k.shy && !k.force && kind != "":
			code = k.Fail(1, full, name, kind)
		}
		if code != 0 {
			return nil
		}
		k.Size = dev.Length() &^ 4095
		for _, end := range []uint64{0, dev.Length() - min(dev.Length(), 64<<10)} {
			if err := dev.Zero(end, min(1<<20, dev.Length()-end)); err != nil {
				return err
			}
		}
		if err := k.Store(dev.Write); err != nil {
			return err
		}
		dev.Changed()
		return nil
	})
	if err != nil {
		return k.Fail(1, failed, name, program.Reason(err))
	}
	return code
}

// mkfsExt4 runs mke2fs(8) of e2fsprogs 1.47.
func mkfsExt4(p *program.Process) int {
	f, err := program.Getopt(p.Argv[1:], "b:cC:d:DE:e:FG:g:hi:I:jJ:KL:l:m:M:nN:o:O:qr:R:St:T:U:vVz:")
	if err != nil {
		return p.Fail(1, "%s: %v\nUsage: %[1]s [-c|-l filename] [-b block-size] [-C cluster-size]", p.Name, err)
	}
	if len(f.Words) == 0 {
		return p.Fail(1, "Usage: %s [-c|-l filename] [-b block-size] [-C cluster-size]", p.Name)
	}
	for option := range strings.SplitSeq(f.Set["E"], ",") {
		key, _, _ := strings.Cut(option, "=")
		switch key {
		case "", "lazy_itable_init", "lazy_journal_init", "discard", "nodiscard", "root_owner", "stride", "stripe_width", "resize", "num_backup_sb", "packed_meta_blocks", "quotatype", "test_fs", "no_copy_xattrs", "hash_seed", "offset", "orphan_file_size", "assume_storage_prezeroed":
		default:
			return p.Fail(1, "\nBad option(s) specified: %s\n", option)
		}
	}
	k := &mkfs{Process: p, Super: content.Super{Kind: "ext4"}, force: f.Has("F"), least: 256 << 10}
	dev := f.Words[0]
	if err := k.called(f.Set["U"], f.Set["L"], 16); err != nil {
		return p.Fail(1, "%s: %v\n", dev, err)
	}
	if p.Device(dev) == nil {
		return p.Fail(1, "The file %s does not exist and no size was specified.", dev)
	}
	return k.make(dev, "%s is apparently in use by the system; will not make a filesystem here!\n", "", "%s: %s while setting up superblock")
}

// mkfsXFS runs mkfs.xfs(8) of xfsprogs 6.1.
func mkfsXFS(p *program.Process) int {
	const usage = "Usage: mkfs.xfs\n/* blocksize */\t\t[-b size=num]"
	f, err := program.Getopt(p.Argv[1:], "b:c:d:fi:Kl:L:m:n:Np:qr:s:CV")
	if err != nil {
		return p.Fail(1, "%s: %v\n%s", p.Name, err, usage)
	}
	if len(f.Words) != 1 {
		return p.Fail(1, "No device name specified\n%s", usage)
	}
	uuid := ""
	for option := range strings.SplitSeq(f.Set["m"], ",") {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "uuid":
			uuid = value
		case "", "crc", "finobt", "rmapbt", "reflink", "inobtcount", "bigtime":
		default:
			return p.Fail(1, "unknown option -m %s\n%s", option, usage)
		}
	}
	k := &mkfs{Process: p, Super: content.Super{Kind: "xfs"}, force: f.Has("f"), least: 300 << 20, shy: true}
	if err := k.called(uuid, f.Set["L"], 12); err != nil {
		return p.Fail(1, "Invalid value: %v\n%s", err, usage)
	}
	dev := f.Words[0]
	if p.Device(dev) == nil {
		return p.Fail(1, "Error accessing specified device %s: No such file or directory\n%s", dev, usage)
	}
	return k.make(dev, "mkfs.xfs: cannot open %s: Device or resource busy",
		"mkfs.xfs: %s appears to contain an existing filesystem (%s).\nmkfs.xfs: Use the -f option to force overwrite.", "mkfs.xfs: pwrite failed: %[2]s on %[1]s")
}

// mkfsBtrfs runs mkfs.btrfs(8) of btrfs-progs 6.2.
func mkfsBtrfs(p *program.Process) int {
	f, err := program.Getopt(p.Argv[1:], "A:b:d:fKl:L:m:Mn:O:qr:R:s:U:vV", "data:", "metadata:", "mixed", "csum:", "checksum:", "nodesize:", "sectorsize:", "features:",
		"runtime-features:", "label:", "uuid:", "rootdir:", "shrink", "byte-count:", "nodiscard", "force", "quiet", "verbose", "version", "help", "alloc-start:", "leafsize:")
	if err != nil {
		return p.Fail(1, "%s: %v\nusage: mkfs.btrfs [options] <dev> [<dev...>]", p.Name, err)
	}
	if len(f.Words) != 1 {
		return p.Fail(1, "usage: mkfs.btrfs [options] <dev> [<dev...>]")
	}
	k := &mkfs{Process: p, Super: content.Super{Kind: "btrfs"}, force: f.Has("f") || f.Has("force"), least: 114294784, shy: true}
	if err := k.called(cmp.Or(f.Set["U"], f.Set["uuid"]), cmp.Or(f.Set["L"], f.Set["label"]), 255); err != nil {
		return p.Fail(1, "ERROR: %v", err)
	}
	dev := f.Words[0]
	if p.Device(dev) == nil {
		return p.Fail(1, "ERROR: probe of %s failed, cannot detect existing filesystem\nWARNING: cannot read superblock on %[1]s, please check manually\n", dev)
	}
	return k.make(dev, "ERROR: unable to open %s: Device or resource busy",
		"ERROR: %s appears to contain an existing filesystem (%s)\nERROR: use the -f option to force overwrite of %[1]s", "ERROR: error during mkfs: %[2]s on %[1]s")
}
