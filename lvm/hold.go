package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// While a volume moves, its writes go to both drives, and to the kernel one of the two
// is enough: a write that only the new drive has taken counts as done. pvmove can give
// up until the very end, and begins anew from the old drive after each loss of power or
// of that drive: then what was said to be written is gone (Linux 6.1, dm-raid1.c,
// do_failures, says that of itself; seen with lvm2 2.03.16: a drive pulled in the middle
// of a move, and put back). So the kernel is told to keep a write that has failed on one
// of them until somebody has decided what becomes of it.
//
// Seen there, too: pvmove that goes on, or ends a move, leaves that as it is; what makes,
// shows and removes volumes of a thin pool that moves does not, and the copy begins anew.

// handleErrors is the feature of dm-mirror that does it: without it errors are counted.
const handleErrors = " 1 handle_errors"

// Hold has the kernel keep writes that fail while a volume moves. The copy begins anew
// if they were not kept before.
func (s *System) Hold(ctx context.Context, group, move string) error {
	return s.reload(ctx, group, move, func(table string) (string, error) {
		if _, err := source(table); err != nil || strings.HasSuffix(table, handleErrors) {
			return "", err
		}
		return table + handleErrors, nil
	})
}

// Retreat has the kernel read and write where the volume moves from and nowhere else.
// That has all that was ever said to be written, and what was kept is written there, or
// fails like anything else on that drive. Where nothing was ever held there is nothing
// to be done.
func (s *System) Retreat(ctx context.Context, group, move string) error {
	return s.reload(ctx, group, move, func(table string) (string, error) {
		back, _ := source(table)
		return back, nil
	})
}

// source is the table of the first leg of a mirror by itself ("0 262144 mirror core 1
// 4096 2 253:1 0 253:2 0": dm-raid1.c, mirror_ctr; pvmove makes one of the whole volume
// with --atomic).
func source(table string) (string, error) {
	f := strings.Fields(table)
	if strings.Contains(table, "\n") || len(f) < 10 || f[2] != "mirror" || f[3] != "core" || f[4] != "1" || f[6] != "2" {
		return "", fmt.Errorf("%w: table of a move: %q", drivebay.ErrInvalid, table)
	}
	return strings.Join([]string{f[0], f[1], "linear", f[7], f[8]}, " "), nil
}

// reload gives a device of device-mapper another table; "" leaves it as it is. One that
// is not active is not found. What has begun is kept until the new table is there, and
// goes on with that.
func (s *System) reload(ctx context.Context, group, volume string, change func(string) (string, error)) error {
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
	// One call of the kernel takes the old table away and puts the new one there: who
	// is killed before it has changed nothing.
	for _, command := range [][]string{{"load", name, "--table", table}, {"resume", "--noflush", "--nolockfs", "--noudevsync", name}} {
		if _, err := s.runner.Run(ctx, append([]string{"dmsetup"}, command...)...); err != nil {
			return fmt.Errorf("volume %s/%s: another table: %w", group, volume, err)
		}
	}
	return nil
}

// table is what a device of device-mapper is made of now.
func (s *System) table(ctx context.Context, group, volume string) (string, error) {
	out, err := s.runner.Run(ctx, "dmsetup", "table", MapperName(group, volume))
	if _, said := errors.AsType[*host.ExitError](err); said {
		return "", fmt.Errorf("volume %s/%s: its table: %w: %w", group, volume, ErrNotFound, err)
	}
	if err != nil {
		return "", fmt.Errorf("volume %s/%s: its table: %w", group, volume, err)
	}
	return strings.TrimSpace(string(out)), nil
}
