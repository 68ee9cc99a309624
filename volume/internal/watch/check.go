package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// checker describes how to check a filesystem without writing to it, and which lines of the
// output to ignore. The check of a mounted filesystem does not read the journal, and misses
// what the journal holds: on each run, e2fsck reports a sound, busy ext4 as wrong in its
// bitmaps, their checksums and its counts, and xfs_repair reports an XFS that was just grown as
// wrong in its superblock (1.47.0 and 6.1.0, tried). An unmounted filesystem with such a
// journal has no verdict before a mount reads the journal. Without one, every fault counts:
// wrong bitmaps hand out blocks that are in use.
type checker struct {
	argv  []string
	fails *regexp.Regexp // it failed: no verdict
	owed  *regexp.Regexp // the journal holds something
	noise *regexp.Regexp // progress
	busy  *regexp.Regexp // no fault of a mounted filesystem
}

var checkers = map[string]checker{
	// e2fsck(8): 4 errors left uncorrected, 8 operational error.
	"ext4": {[]string{"e2fsck", "-n", "-f"}, regexp.MustCompile(`while trying to open|Cannot continue`), regexp.MustCompile(`skipping journal recovery`),
		regexp.MustCompile(`(?i)^e2fsck |^Warning|^Pass \d|^IGNORED|^[\w ]+\? (no|yes)$|Filesystem still has errors|: \d+/\d+ files`),
		regexp.MustCompile(`(?i)bitmap|count wrong|counts wrong|^Group \d+.* checksum|orphan|zero dtime|^Padding`)},
	// xfs_repair(8): with -n, exit code 1 means that there is something to repair. It refuses a
	// mounted filesystem unless -f makes it treat the device as a file (tried).
	"xfs": {[]string{"xfs_repair", "-n", "-f"}, regexp.MustCompile(`fatal error|cannot open`), regexp.MustCompile(`valuable metadata changes`),
		regexp.MustCompile(`^Phase \d|^- |^No modify|^ALERT|^ERROR: The filesystem has valuable|^would |would have been modified|^Cannot proceed|^Exiting|host filesystem|^Repair may fail`),
		regexp.MustCompile(`sb_(icount|ifree|fdblocks)|agi unlinked|counted`)},
	// btrfs-check(8): --force accepts a mounted one.
	"btrfs": {[]string{"btrfs", "check", "--readonly", "--force"}, regexp.MustCompile(`cannot open|could not check`), regexp.MustCompile(`log tree`),
		regexp.MustCompile(`^Opening|^Checking|^UUID|^\[\d|^WARNING|bytes|blocks|cache and super generation`), regexp.MustCompile(`^$`)},
}

// idle makes a check yield to all other I/O (ioprio_set(2), IOPRIO_CLASS_IDLE).
var idle = []string{"ionice", "-c", "3", "nice", "-n", "19"}

// check runs the program once. It returns the lines that report faults; a sound filesystem has
// none.
func (e *Watcher) check(ctx context.Context, kind string, disk host.Disk, mounted bool) (faults []string, err error) {
	c, ok := checkers[kind]
	if !ok {
		return nil, fmt.Errorf("check of %q: %w", kind, drivebay.ErrNoSupport)
	}
	argv := append(c.argv[:len(c.argv):len(c.argv)], disk.Path())
	out, err := e.Machine.Run(ctx, append(idle[:len(idle):len(idle)], argv...)...)
	if errors.Is(err, fs.ErrNotExist) { // without ionice or nice, it checks at full speed
		out, err = e.Machine.Run(ctx, argv...)
	}
	exit, ended := errors.AsType[*host.ExitError](err)
	switch {
	case err == nil:
		return nil, nil
	case !ended:
		return nil, err
	}
	text := string(out) + "\n" + exit.Stderr
	switch {
	case exit.Code < 0, kind == "ext4" && exit.Code != 4, c.fails.MatchString(text):
		return nil, err
	case !mounted && c.owed.MatchString(text):
		return nil, fmt.Errorf("%w: its journal was not read since it was last in use", drivebay.ErrBusy)
	}
	return c.faults(text, mounted), nil
}

// faults returns the lines that report a fault.
func (c checker) faults(text string, mounted bool) []string {
	out := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !c.noise.MatchString(line) && !(mounted && c.busy.MatchString(line)) {
			out = append(out, line)
		}
	}
	return out
}
