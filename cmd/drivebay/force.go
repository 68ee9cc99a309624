package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
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
	dry := dryRunFlag(cmd)
	force := a.changeAs(true, func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		if _, err := d.Usage.Next(drivebay.UsageForce); err != nil {
			return "", fmt.Errorf("drive %s (%s): %w: run `drivebay release %s` first", d.ID, d.Name, err, d.ID)
		}
		lost, err := a.lostNow(cmd.Context(), d)
		if err != nil {
			return "", err
		}
		missing := slices.DeleteFunc(slices.Clone(lost), func(l plan.Loss) bool {
			return *all || slices.Contains(*lose, l.Name) || slices.Contains(*lose, l.ID)
		})
		if !*yes || len(missing) > 0 {
			return "", fmt.Errorf("%w: drive %s (%s), serial %s, would be removed; permanently lost: %s; to confirm, add %s",
				drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(d.Serial), plan.LossText(lost), loseFlags(lost))
		}
		return "can be pulled; the data on it is lost", src.Operate(cmd.Context(), d.ID, drivebay.LeaveForce, *why)
	})
	cmd.RunE = a.orDryRun(dry, true, drivebay.LeaveForce, force)
	return cmd
}

// lostNow lists the volumes and snapshots that would be lost with a drive now.
func (a driveCommands) lostNow(ctx context.Context, d *drivebay.Drive) ([]plan.Loss, error) {
	f, err := a.facts(ctx)
	if err != nil {
		return nil, err
	}
	return f.Lost(d)
}

func loseFlags(lost []plan.Loss) string {
	if len(lost) == 0 {
		return "--yes"
	}
	return "--yes, and --lose NAME for each of them or --lose-all"
}
