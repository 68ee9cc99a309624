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

// forceCommand takes a drive out with what still depends on it.
func (a *app) forceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "force-remove ID", Short: "Take out a drive with what still depends on it", Args: oneDrive,
		Long: "Takes out a drive that has to leave and cannot be emptied, because it is dead or gone. What is\n" +
			"on it is lost for good, but for mirrors, which keep their other copy. All of it is named, and\n" +
			"wanted back: --yes and either --lose NAME for each, or --lose-all. What is mounted is refused,\n" +
			"and so is a drive that the machine runs from. A drive that is in use is released first.",
		Example: "  drivebay force-remove sdc --yes --lose data-1",
	}
	yes := cmd.Flags().Bool("yes", false, "yes, this drive")
	lose := cmd.Flags().StringSlice("lose", nil, "a volume or snapshot that may be lost, by its name or id")
	all := cmd.Flags().Bool("lose-all", false, "all that is on it may be lost")
	why := cmd.Flags().String("why", "", "the reason, kept with the drive and told in its events")
	cmd.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		if _, err := d.Usage.Next(drivebay.UsageForce); err != nil {
			return "", fmt.Errorf("drive %s (%s): %w: `drivebay release` comes first", d.ID, d.Name, err)
		}
		lost, err := a.lostWith(cmd.Context(), d.ID)
		if err != nil {
			return "", err
		}
		missing := slices.DeleteFunc(slices.Clone(lost), func(l loss) bool {
			return *all || slices.Contains(*lose, l.name) || slices.Contains(*lose, l.id)
		})
		if !*yes || len(missing) > 0 {
			return "", fmt.Errorf("%w: drive %s (%s), serial %s, would be taken out, and lost for good: %s; to do so add --yes and %s",
				drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(d.Serial), lossText(lost), loseFlags(lost))
		}
		return "may be pulled; what was on it is lost", src.Lead(cmd.Context(), d.ID, drivebay.LeaveForce, *why)
	})
	return cmd
}

// loss is something that goes with a drive.
type loss struct{ kind, id, name string }

// lostWith lists what has its only copy on a drive.
func (a *app) lostWith(ctx context.Context, drive string) (lost []loss, err error) {
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
	for _, v := range set.Volumes {
		if slices.Contains(v.Location.Drives, drive) && !v.Location.Mirrored() {
			lost = append(lost, loss{"volume", v.ID, v.Name})
		}
	}
	for _, s := range set.Snapshots {
		if slices.Contains(s.Location.Drives, drive) {
			lost = append(lost, loss{"snapshot", s.ID, s.Name})
		}
	}
	return lost, nil
}

func lossText(lost []loss) string {
	if len(lost) == 0 {
		return "nothing, as far as is known"
	}
	var out []string
	for _, l := range lost {
		out = append(out, fmt.Sprintf("%s %s (%s)", l.kind, l.id, render.Clean(l.name)))
	}
	return strings.Join(out, ", ")
}

func loseFlags(lost []loss) string {
	if len(lost) == 0 {
		return "nothing else"
	}
	return "--lose with each of their names, or --lose-all"
}
