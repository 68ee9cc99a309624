package filesystem

import (
	"cmp"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// Programs are the programs that make and check filesystems.
var Programs = map[string]program.Program{
	"mkfs.ext4": mkfsExt4, "mke2fs": mkfsExt4, "mkfs.xfs": mkfsXFS, "mkfs.btrfs": mkfsBtrfs,
	"fsck.ext4": e2fsck, "e2fsck": e2fsck, "xfs_repair": xfsRepair, "btrfs": btrfs,
}

// check reads the filesystem of a device, which must exist. repair removes its damage.
func check(p *program.Process, name string, repair bool) (s content.Super, ok bool, err error) {
	dev := p.Device(name)
	err = dev.Do(p.Ctx, block.Access{Write: repair, N: 1 << 20}, func() error {
		if s, ok = content.ReadSuper(dev.Read); ok && repair {
			whole := s
			whole.Damaged, whole.Errors, whole.First, whole.Last = false, 0, 0, 0
			return whole.Store(dev.Write)
		}
		return nil
	})
	return s, ok, err
}

// held reports whether a device is mounted or claimed. A program that writes needs exclusive access.
func held(p *program.Process, name string) (mounted, busy bool) {
	dev := p.Device(name)
	p.Devices.Mu.RLock()
	defer p.Devices.Mu.RUnlock()
	return dev.Mounted, dev.Busy()
}

// e2fsck runs e2fsck(8): 0 clean, 1 errors were corrected, 4 errors are left, 8 operational error, 16
// usage error.
func e2fsck(p *program.Process) int {
	f, err := program.Getopt(p.Argv[1:], "panyrcC:B:dE:fFvtb:j:DVl:L:z:k")
	p.Complain("e2fsck 1.47.0 (5-Feb-2023)")
	if err != nil || len(f.Words) != 1 {
		return p.Fail(16, "Usage: e2fsck [-panyrcdfktvDFV] [-b superblock] [-B blocksize]")
	}
	name := f.Words[0]
	repair := !f.Has("n")
	if p.Device(name) == nil {
		return p.Fail(8, "e2fsck: No such file or directory while trying to open %s\nPossibly non-existent device?", name)
	}
	switch mounted, busy := held(p, name); {
	case mounted && repair:
		return p.Fail(8, "%s is mounted.\ne2fsck: Cannot continue, aborting.\n", name)
	case busy && repair:
		return p.Fail(8, "%s is in use.\ne2fsck: Cannot continue, aborting.\n", name)
	case mounted:
		p.Complain("Warning!  %s is mounted.\nWarning: skipping journal recovery because doing a read-only filesystem check.", name)
	}
	s, ok, err := check(p, name, false)
	switch {
	case err != nil:
		return p.Fail(8, "e2fsck: Attempt to read block from filesystem resulted in short read while trying to open %s\nCould this be a zero-length partition?", name)
	case !ok || s.Kind != "ext4":
		return p.Fail(8, "e2fsck: Bad magic number in super-block while trying to open %s\n", name)
	}
	if dev := p.Device(name); s.Size > dev.Length() { // e2fsck/super.c, check_super_block: it ends with success all the same
		p.Say("The filesystem size (according to the superblock) is %d blocks\nThe physical size of the device is %d blocks\nEither the superblock or the partition table is likely to be corrupt!\nAbort? no\n", s.Size/4096, dev.Length()/4096)
	}
	for n, pass := range []string{"Checking inodes, blocks, and sizes", "Checking directory structure", "Checking directory connectivity", "Checking reference counts", "Checking group summary information"} {
		p.Say("Pass %d: %s", n+1, pass)
	}
	answer := map[bool]string{true: "yes", false: "no"}[repair]
	if s.Damaged {
		p.Say("Directory inode 2, block #0, offset 0: directory corrupted\nSalvage? %s\n", answer)
	}
	if s.Damaged || s.Errors > 0 && repair {
		p.Say("%s: ********** WARNING: Filesystem still has errors **********", cmp.Or(s.Label, name))
	}
	switch {
	case repair && (s.Damaged || s.Errors > 0):
		if _, _, err := check(p, name, true); err != nil {
			return p.Fail(8, "e2fsck: %s while writing %s", program.Reason(err), name)
		}
		return 1
	case s.Damaged:
		return 4
	}
	u := s.Usage()
	p.Say("%s: %d/%d files (0.0%% non-contiguous), %d/%d blocks", cmp.Or(s.Label, name), u.Inodes-u.FreeInodes, u.Inodes, (u.Bytes-u.Free)/4096, s.Size/4096)
	return 0
}

// xfsRepair runs xfs_repair(8). With -n, status 1 means that a repair is needed.
func xfsRepair(p *program.Process) int {
	f, err := program.Getopt(p.Argv[1:], "c:defLl:m:no:Pr:t:vV")
	if err != nil || len(f.Words) != 1 {
		return p.Fail(1, "Usage: xfs_repair [options] device")
	}
	name := f.Words[0]
	if p.Device(name) == nil {
		return p.Fail(1, "%s: No such file or directory\n\nfatal error -- couldn't initialize XFS library", name)
	}
	if mounted, busy := held(p, name); mounted && !f.Has("f") {
		return p.Fail(1, "xfs_repair: %s contains a mounted and writable filesystem\n\nfatal error -- couldn't initialize XFS library", name)
	} else if busy && !f.Has("n") {
		return p.Fail(1, "xfs_repair: cannot open %s: Device or resource busy", name)
	}
	p.Complain("Phase 1 - find and verify superblock...")
	s, ok, err := check(p, name, false)
	switch {
	case err != nil:
		return p.Fail(1, "superblock read failed, offset 0, size 524288, ag 0, rval -1\n\nfatal error -- %s", program.Reason(err))
	case !ok || s.Kind != "xfs":
		return p.Fail(1, "bad primary superblock - bad magic number !!!\n\nattempting to find secondary superblock...\n.found candidate secondary superblock...\nSorry, could not find valid secondary superblock\nExiting now.")
	}
	p.Complain("Phase 2 - using internal log\nPhase 3 - for each AG...")
	if s.Damaged {
		p.Complain("bad CRC for inode 128")
	}
	if !f.Has("n") {
		if _, _, err := check(p, name, true); err != nil {
			return p.Fail(1, "xfs_repair: %s", program.Reason(err))
		}
		p.Complain("done")
		return 0
	}
	p.Say("No modify flag set, skipping phase 5")
	if s.Damaged {
		return 1
	}
	return 0
}

// btrfs runs btrfs(8), with the subcommand "check" only (btrfs-check(8)).
func btrfs(p *program.Process) int {
	if len(p.Argv) < 2 || p.Argv[1] != "check" {
		return p.Fail(1, "btrfs: unknown command '%s'", strings.Join(p.Argv[1:], " "))
	}
	f, err := program.Getopt(p.Argv[2:], "s:br:E:Qp", "super:", "backup", "repair", "readonly", "init-csum-tree", "init-extent-tree", "mode:", "check-data-csum", "qgroup-report", "force", "progress", "tree-root:", "chunk-root:")
	if err != nil || len(f.Words) != 1 {
		return p.Fail(1, "btrfs check: %v\nusage: btrfs check [options] <device>", err)
	}
	name := f.Words[0]
	p.Say("Opening filesystem to check...")
	if p.Device(name) == nil {
		return p.Fail(1, "ERROR: mount check: cannot open %s: No such file or directory\nERROR: could not check mount status: No such file or directory", name)
	}
	repair := f.Has("repair")
	if mounted, busy := held(p, name); mounted && (!f.Has("force") || repair) {
		return p.Fail(1, "ERROR: %s is currently mounted, use --force if you really intend to check the filesystem", name)
	} else if busy && repair {
		return p.Fail(1, "ERROR: cannot open device '%s': Device or resource busy", name)
	}
	s, ok, err := check(p, name, repair)
	switch {
	case err != nil:
		return p.Fail(1, "ERROR: cannot read %s: %s\nERROR: cannot open file system", name, program.Reason(err))
	case !ok || s.Kind != "btrfs":
		return p.Fail(1, "No valid Btrfs found on %s\nERROR: cannot open file system", name)
	}
	p.Say("Checking filesystem on %s\nUUID: %s", name, content.UUIDText(s.UUID))
	if s.Damaged {
		p.Complain("root 5 inode 256 errors 200, dir isize wrong\nERROR: errors found in fs roots")
		p.Say("found %d bytes used, error(s) found", s.Used)
		if repair {
			return 0
		}
		return 1
	}
	p.Say("found %d bytes used, no error found", s.Used)
	return 0
}
