package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// forceCommand returns the command that takes out a drive with the volumes that still need it.
func (a driveCommands) forceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "force-remove DRIVE", Short: "Remove a drive with the volumes that still depend on it", Args: oneDrive,
		Long: "Removes a drive that is leaving and cannot be emptied because it is dead or gone. The data on the\n" +
			"drive is lost permanently, except for mirrors with all data on another drive. The error names\n" +
			"every volume and snapshot that would be lost: confirm with --yes and --lose NAME for each of\n" +
			"them, or with --lose-all. The command refuses a drive with mounted volumes and a drive that the\n" +
			"machine runs from. Release a drive that is in use first with `drivebay release DRIVE`.",
		Example: "  drivebay force-remove sdc --yes --lose data-1",
	}
	yes := cmd.Flags().Bool("yes", false, "confirm the removal of this drive")
	lose := cmd.Flags().StringSlice("lose", nil, "name or ID of a volume or snapshot that may be lost")
	all := cmd.Flags().Bool("lose-all", false, "confirm the loss of all volumes and snapshots on the drive")
	why := cmd.Flags().String("why", "", "reason; stored with the drive and shown in its events")
	cmd.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		if _, err := d.Usage.Next(drivebay.UsageForce); err != nil {
			return "", fmt.Errorf("drive %s (%s): %w: run `drivebay release %s` first", d.ID, d.Name, err, d.ID)
		}
		lost, err := a.lostWith(cmd.Context(), d)
		if err != nil {
			return "", err
		}
		missing := slices.DeleteFunc(slices.Clone(lost), func(l loss) bool {
			return *all || slices.Contains(*lose, l.name) || slices.Contains(*lose, l.id)
		})
		if !*yes || len(missing) > 0 {
			return "", fmt.Errorf("%w: drive %s (%s), serial %s, would be removed; permanently lost: %s; to confirm, add %s",
				drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(d.Serial), lossText(lost), loseFlags(lost))
		}
		return "can be pulled; the data on it is lost", src.Operate(cmd.Context(), d.ID, drivebay.LeaveForce, *why)
	})
	return cmd
}

// loss is a volume or snapshot that is lost with a drive.
type loss struct{ kind, id, name string }

// lostWith lists the volumes and snapshots that have their only copy on a drive. It
// refuses if the drive is ONLINE and one of these volumes is mounted.
func (a driveCommands) lostWith(ctx context.Context, d *drivebay.Drive) (lost []loss, err error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	set, err := client.Volumes(ctx)
	if errors.Is(err, drivebay.ErrNoSupport) {
		return nil, nil // this machine makes no volumes
	}
	if err != nil {
		return nil, err
	}
	drives, err := client.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range set.Volumes {
		if !slices.Contains(v.Location.Drives, d.ID) || survives(&v.Volume, d.ID, drives) {
			continue
		}
		if d.Status == drivebay.StatusOnline && len(v.Publications) > 0 {
			return nil, fmt.Errorf("drive %s (%s): %w: %s is still mounted at %s", d.ID, d.Name, drivebay.ErrBusy, calledVolume(&v.Volume), render.Clean(v.Publications[0].Path))
		}
		lost = append(lost, loss{"volume", v.ID, v.Name})
	}
	for _, s := range set.Snapshots {
		if slices.Contains(s.Location.Drives, d.ID) {
			lost = append(lost, loss{"snapshot", s.ID, s.Name})
		}
	}
	return lost, nil
}

// survives reports whether a volume is a mirror with all its data on another drive that is ONLINE.
func survives(v *drivebay.Volume, drive string, s *drivebay.Snapshot) bool {
	if m := v.Mirror; !v.Location.Mirrored() || m != nil && (m.Doubt != "" || m.Current == drive) {
		return false
	}
	return slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		other, known := s.Find(id)
		return id != drive && known && other.Status == drivebay.StatusOnline
	})
}

func lossText(lost []loss) string {
	if len(lost) == 0 {
		return "no known volume or snapshot"
	}
	var out []string
	for _, l := range lost {
		out = append(out, fmt.Sprintf("%s %s (%s)", l.kind, l.id, render.Clean(l.name)))
	}
	return strings.Join(out, ", ")
}

func loseFlags(lost []loss) string {
	if len(lost) == 0 {
		return "--yes"
	}
	return "--yes, and --lose NAME for each of them or --lose-all"
}
