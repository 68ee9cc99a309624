package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// While a volume moves, its writes go to both drives, and the kernel completes a write that
// only the new drive has. pvmove can be aborted until the very end, and starts again from the
// old drive after a loss of power or of that drive: completed writes are then lost (Linux
// 6.1, dm-raid1.c, do_failures, says so itself; tried with lvm2 2.03.16: a drive was pulled in
// the middle of a move, and put back). So KeepFailedWrites makes the kernel keep a write that
// failed on one of the drives until the caller ends or reverts the move.
//
// Also tried there: a pvmove that continues or ends a move keeps this setting. Commands that
// make, show and remove volumes of a thin pool that moves drop it, and the copy starts again.

// handleErrors is the feature of dm-mirror that keeps failed writes; the default counts errors.
const handleErrors = " 1 handle_errors"

// KeepFailedWrites makes the kernel keep failed writes while a volume moves. The copy starts again if
// KeepFailedWrites was not in effect before.
func (s *System) KeepFailedWrites(ctx context.Context, group, move string) error {
	return s.reloadTable(ctx, group, move, func(table string) (string, error) {
		if _, err := source(table); err != nil || strings.HasSuffix(table, handleErrors) {
			return "", err
		}
		return table + handleErrors, nil
	})
}

// RevertToSource makes the kernel use only the drive that the volume moves from. That drive has
// every completed write; the kept writes go there, or fail like any other write on that
// drive. A device whose table is not the mirror of a move stays as it is.
func (s *System) RevertToSource(ctx context.Context, group, move string) error {
	return s.reloadTable(ctx, group, move, func(table string) (string, error) {
		back, _ := source(table)
		return back, nil
	})
}

// source returns the linear table of the first leg of a mirror ("0 262144 mirror core 1
// 4096 2 253:1 0 253:2 0": dm-raid1.c, mirror_ctr; with --atomic pvmove makes one mirror of
// the whole volume).
func source(table string) (string, error) {
	f := strings.Fields(table)
	if strings.Contains(table, "\n") || len(f) < 10 || f[2] != "mirror" || f[3] != "core" || f[4] != "1" || f[6] != "2" {
		return "", fmt.Errorf("%w: not the table of a move: %q", drivebay.ErrInvalid, table)
	}
	return strings.Join([]string{f[0], f[1], "linear", f[7], f[8]}, " "), nil
}

// reloadTable gives a device-mapper device the table that change returns; "" keeps the old one.
// An inactive device is ErrNotFound. Requests under way wait for the new table and continue
// with it.
func (s *System) reloadTable(ctx context.Context, group, volume string, change func(string) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	was, err := s.table(ctx, group, volume)
	if err != nil {
		return err
	}
	table, err := change(was)
	if err != nil || table == "" {
		return err
	}
	name := MapperName(group, volume)
	// One call to the kernel (resume) replaces the table: until then nothing has changed.
	for _, command := range [][]string{{"load", name, "--table", table}, {"resume", "--noflush", "--nolockfs", "--noudevsync", name}} {
		if _, err := s.dmsetup(ctx, command...); err != nil {
			return fmt.Errorf("volume %s/%s: load a device-mapper table: %w", group, volume, err)
		}
	}
	return nil
}

// table returns the current table of a device-mapper device.
func (s *System) table(ctx context.Context, group, volume string) (string, error) {
	out, err := s.dmsetup(ctx, "table", MapperName(group, volume))
	if err != nil {
		return "", fmt.Errorf("volume %s/%s: read the device-mapper table: %w", group, volume, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// dmsetup runs dmsetup(8). Only an error that says that the device does not exist is
// ErrNotFound: dmsetup exits with 1 for any failure.
func (s *System) dmsetup(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := s.runner.Run(ctx, append([]string{"dmsetup"}, argv...)...)
	if exit, ok := errors.AsType[*host.ExitError](err); ok && deviceMissing(exit.Stderr) {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return out, err
}

// deviceMissing reports whether dmsetup says that a device does not exist. It has two
// messages for that: its own ("Device does not exist."), and the error of the kernel
// ("device-mapper: table ioctl on x  failed: No such device or address"; drivers/md/dm-ioctl.c
// returns ENXIO for a name that it does not have).
func deviceMissing(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "Device does not exist") ||
			strings.HasPrefix(line, "device-mapper: ") && strings.Contains(line, " ioctl on ") && strings.Contains(line, "failed: No such device or address") {
			return true
		}
	}
	return false
}
