package hostsim

import (
	"cmp"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// fsPrograms are the programs that make and check filesystems.
var fsPrograms = map[string]program{
	"mkfs.ext4": mkfsExt4, "mke2fs": mkfsExt4, "mkfs.xfs": mkfsXFS, "mkfs.btrfs": mkfsBtrfs,
	"fsck.ext4": e2fsck, "e2fsck": e2fsck, "xfs_repair": xfsRepair, "btrfs": btrfs,
}

// check reads the filesystem of a device, which must exist. repair removes its damage.
func check(p *process, name string, repair bool) (s content.Super, ok bool, err error) {
	dev := p.device(name)
	err = dev.Do(p.ctx, block.Access{Write: repair, N: 1 << 20}, func() error {
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
func held(p *process, name string) (mounted, busy bool) {
	dev := p.device(name)
	p.m.Mu.RLock()
	defer p.m.Mu.RUnlock()
	return dev.Mounted, dev.Busy()
}

// e2fsck runs e2fsck(8): 0 clean, 1 errors were corrected, 4 errors are left, 8 operational error, 16
// usage error.
func e2fsck(p *process) int {
	f, err := getopt(p.argv[1:], "panyrcC:B:dE:fFvtb:j:DVl:L:z:k")
	p.complain("e2fsck 1.47.0 (5-Feb-2023)")
	if err != nil || len(f.words) != 1 {
		return p.fail(16, "Usage: e2fsck [-panyrcdfktvDFV] [-b superblock] [-B blocksize]")
	}
	name := f.words[0]
	repair := !f.has("n")
	if p.device(name) == nil {
		return p.fail(8, "e2fsck: No such file or directory while trying to open %s\nPossibly non-existent device?", name)
	}
	switch mounted, busy := held(p, name); {
	case mounted && repair:
		return p.fail(8, "%s is mounted.\ne2fsck: Cannot continue, aborting.\n", name)
	case busy && repair:
		return p.fail(8, "%s is in use.\ne2fsck: Cannot continue, aborting.\n", name)
	case mounted:
		p.complain("Warning!  %s is mounted.\nWarning: skipping journal recovery because doing a read-only filesystem check.", name)
	}
	s, ok, err := check(p, name, false)
	switch {
	case err != nil:
		return p.fail(8, "e2fsck: Attempt to read block from filesystem resulted in short read while trying to open %s\nCould this be a zero-length partition?", name)
	case !ok || s.Kind != "ext4":
		return p.fail(8, "e2fsck: Bad magic number in super-block while trying to open %s\n", name)
	}
	for n, pass := range []string{"Checking inodes, blocks, and sizes", "Checking directory structure", "Checking directory connectivity", "Checking reference counts", "Checking group summary information"} {
		p.say("Pass %d: %s", n+1, pass)
	}
	answer := map[bool]string{true: "yes", false: "no"}[repair]
	if s.Damaged {
		p.say("Directory inode 2, block #0, offset 0: directory corrupted\nSalvage? %s\n", answer)
	}
	if s.Damaged || s.Errors > 0 && repair {
		p.say("%s: ********** WARNING: Filesystem still has errors **********", cmp.Or(s.Label, name))
	}
	switch {
	case repair && (s.Damaged || s.Errors > 0):
		if _, _, err := check(p, name, true); err != nil {
			return p.fail(8, "e2fsck: %s while writing %s", reason(err), name)
		}
		return 1
	case s.Damaged:
		return 4
	}
	u := s.Usage()
	p.say("%s: %d/%d files (0.0%% non-contiguous), %d/%d blocks", cmp.Or(s.Label, name), u.Inodes-u.FreeInodes, u.Inodes, (u.Bytes-u.Free)/4096, s.Size/4096)
	return 0
}

// xfsRepair runs xfs_repair(8). With -n, status 1 means that a repair is needed.
func xfsRepair(p *process) int {
	f, err := getopt(p.argv[1:], "c:defLl:m:no:Pr:t:vV")
	if err != nil || len(f.words) != 1 {
		return p.fail(1, "Usage: xfs_repair [options] device")
	}
	name := f.words[0]
	if p.device(name) == nil {
		return p.fail(1, "%s: No such file or directory\n\nfatal error -- couldn't initialize XFS library", name)
	}
	if mounted, busy := held(p, name); mounted && !f.has("f") {
		return p.fail(1, "xfs_repair: %s contains a mounted and writable filesystem\n\nfatal error -- couldn't initialize XFS library", name)
	} else if busy && !f.has("n") {
		return p.fail(1, "xfs_repair: cannot open %s: Device or resource busy", name)
	}
	p.complain("Phase 1 - find and verify superblock...")
	s, ok, err := check(p, name, false)
	switch {
	case err != nil:
		return p.fail(1, "superblock read failed, offset 0, size 524288, ag 0, rval -1\n\nfatal error -- %s", reason(err))
	case !ok || s.Kind != "xfs":
		return p.fail(1, "bad primary superblock - bad magic number !!!\n\nattempting to find secondary superblock...\n.found candidate secondary superblock...\nSorry, could not find valid secondary superblock\nExiting now.")
	}
	p.complain("Phase 2 - using internal log\nPhase 3 - for each AG...")
	if s.Damaged {
		p.complain("bad CRC for inode 128")
	}
	if !f.has("n") {
		if _, _, err := check(p, name, true); err != nil {
			return p.fail(1, "xfs_repair: %s", reason(err))
		}
		p.complain("done")
		return 0
	}
	p.say("No modify flag set, skipping phase 5")
	if s.Damaged {
		return 1
	}
	return 0
}

// btrfs runs btrfs(8), with the subcommand "check" only (btrfs-check(8)).
func btrfs(p *process) int {
	if len(p.argv) < 2 || p.argv[1] != "check" {
		return p.fail(1, "btrfs: unknown command '%s'", strings.Join(p.argv[1:], " "))
	}
	f, err := getopt(p.argv[2:], "s:br:E:Qp", "super:", "backup", "repair", "readonly", "init-csum-tree", "init-extent-tree", "mode:", "check-data-csum", "qgroup-report", "force", "progress", "tree-root:", "chunk-root:")
	if err != nil || len(f.words) != 1 {
		return p.fail(1, "btrfs check: %v\nusage: btrfs check [options] <device>", err)
	}
	name := f.words[0]
	p.say("Opening filesystem to check...")
	if p.device(name) == nil {
		return p.fail(1, "ERROR: mount check: cannot open %s: No such file or directory\nERROR: could not check mount status: No such file or directory", name)
	}
	repair := f.has("repair")
	if mounted, busy := held(p, name); mounted && (!f.has("force") || repair) {
		return p.fail(1, "ERROR: %s is currently mounted, use --force if you really intend to check the filesystem", name)
	} else if busy && repair {
		return p.fail(1, "ERROR: cannot open device '%s': Device or resource busy", name)
	}
	s, ok, err := check(p, name, repair)
	switch {
	case err != nil:
		return p.fail(1, "ERROR: cannot read %s: %s\nERROR: cannot open file system", name, reason(err))
	case !ok || s.Kind != "btrfs":
		return p.fail(1, "No valid Btrfs found on %s\nERROR: cannot open file system", name)
	}
	p.say("Checking filesystem on %s\nUUID: %s", name, content.UUIDText(s.UUID))
	if s.Damaged {
		p.complain("root 5 inode 256 errors 200, dir isize wrong\nERROR: errors found in fs roots")
		p.say("found %d bytes used, error(s) found", s.Used)
		if repair {
			return 0
		}
		return 1
	}
	p.say("found %d bytes used, no error found", s.Used)
	return 0
}
