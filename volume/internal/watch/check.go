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
	argv   []string
	finds  int            // exit status that says that there are faults
	fails  *regexp.Regexp // it failed: no verdict
	broken *regexp.Regexp // it failed because of faults: the worst ones
	owed   *regexp.Regexp // the journal holds something
	noise  *regexp.Regexp // progress
	busy   *regexp.Regexp // no fault of a mounted filesystem
	passed *regexp.Regexp // a fault that the program reports and then ends with success; nil: none
}

// unread is what a program says of a device that it cannot read. That is a fault of the device, which is reported as such.
var unread = regexp.MustCompile(`Input/output error|short read|Error reading|No such (file|device)|resource busy`)

var checkers = map[string]checker{
	// e2fsck(8): the status is the sum of 4, errors left uncorrected, and 8, operational error. Of a filesystem without a journal or a root
	// directory it is 12, of one without any superblock 8 (1.47.0, tried).
	"ext4": {[]string{"e2fsck", "-n", "-f"}, 4, regexp.MustCompile(`while trying to open|Cannot continue`),
		regexp.MustCompile(`Filesystem still has errors|(Bad magic number in super-block|superblock is corrupt|does not match superblock) while trying to open`),
		regexp.MustCompile(`skipping journal recovery`),
		regexp.MustCompile(`(?i)^e2fsck |^Warning|^Pass \d|^IGNORED|^[\w ]+\? (no|yes)$|Filesystem still has errors|: \d+/\d+ files|^The superblock could not|^filesystem(\.  If| \(and not)|^is corrupt, and you|^e2fsck -b|^or$`),
		regexp.MustCompile(`(?i)bitmap|count wrong|counts wrong|^Group \d+.* checksum|orphan|zero dtime|^Padding`),
		// The filesystem is larger than its device: with -n, e2fsck does not abort, and ends with 0 (1.47.0, tried).
		regexp.MustCompile(`The physical size of the device is`)},
	// xfs_repair(8): with -n, exit code 1 means that there is something to repair. It refuses a
	// mounted filesystem unless -f makes it treat the device as a file (tried).
	"xfs": {[]string{"xfs_repair", "-n", "-f"}, 1, regexp.MustCompile(`fatal error|cannot open`), regexp.MustCompile(`bad magic|bad CRC|CRC error`), regexp.MustCompile(`valuable metadata changes`),
		regexp.MustCompile(`^Phase \d|^- |^No modify|^ALERT|^ERROR: The filesystem has valuable|^would |would have been modified|^Cannot proceed|^Exiting|host filesystem|^Repair may fail|^ignored because the -n option|^which may be resolved by first mounting`),
		regexp.MustCompile(`sb_(icount|ifree|fdblocks)|agi unlinked|counted`), nil},
	// btrfs-check(8): --force accepts a mounted one. It ends at the first tree that it cannot read, with words that it has for any failure (6.2,
	// tried): of a mounted filesystem, which may have been written meanwhile, only lines that name a block count.
	"btrfs": {[]string{"btrfs", "check", "--readonly", "--force"}, 1, regexp.MustCompile(`cannot open|could not check`),
		regexp.MustCompile(`No valid Btrfs found|checksum verify failed|bad tree block|parent transid verify failed`), regexp.MustCompile(`log tree`),
		regexp.MustCompile(`^Opening|^Checking|^UUID|^\[\d|^WARNING|bytes|blocks|cache and super generation`), regexp.MustCompile(`^ERROR: (cannot|could not) |^Couldn't `), nil},
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
	case err == nil && (c.passed == nil || !c.passed.Match(out)):
		return nil, nil
	case err == nil:
		return c.faults(strings.ReplaceAll(string(out), disk.Path(), "the device"), mounted), nil
	case !ended:
		return nil, err
	}
	text := strings.ReplaceAll(string(out)+"\n"+exit.Stderr, disk.Path(), "the device") // the path is another one in each run
	switch {
	case !c.ruled(exit.Code, text):
		return nil, err
	case !mounted && c.owed.MatchString(text):
		return nil, fmt.Errorf("%w: its journal was not read since it was last in use", drivebay.ErrBusy)
	}
	return c.faults(text, mounted), nil
}

// ruled reports whether the output of a program that did not succeed is a verdict.
func (c checker) ruled(code int, text string) bool {
	switch {
	case code < 0, code >= 126: // it was killed, or could not be started (ionice(1))
		return false
	case c.broken.MatchString(text) && !unread.MatchString(text):
		return true
	}
	return code == c.finds && !c.fails.MatchString(text)
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
