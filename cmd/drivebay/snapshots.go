package main

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a *app) volumeSnapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use: "snapshot VOLUME NAME", Short: "Keep a thin volume as it is now", Args: cobra.ExactArgs(2),
		Long: "Keeps a thin volume as it is now, and prints the id of the snapshot. A second call with the\nsame name prints the same id. A program that is writing meanwhile is not told.",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, v, err := a.pickVolume(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var made drivebay.VolumeSnapshot
			err = a.untilDone(cmd.Context(), client, func() (err error) {
				made, err = client.CreateSnapshot(cmd.Context(), v.ID, args[1])
				return err
			})
			if err != nil {
				return err
			}
			return a.print(fmt.Sprintln(made.ID))
		},
	}
}

func (a *app) volumeSnapshotsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "snapshots", Short: "List the snapshots of volumes"}
	out := outputFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		set, err := client.Volumes(cmd.Context())
		if err != nil {
			return err
		}
		list := append([]drivebay.VolumeSnapshot{}, set.Snapshots...)
		return a.printAs(out, list, func(s render.Style) string { return render.Snapshots(list, set, s) })
	}
	return cmd
}

func (a *app) volumeSnapshotDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot-delete SNAPSHOT", Short: "Remove a snapshot", Args: cobra.ExactArgs(1),
		Long: "Removes a snapshot, by its id or name. Without --yes nothing is done.",
	}
	yes := cmd.Flags().Bool("yes", false, "yes, what it keeps may be lost")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if !*yes {
			return fmt.Errorf("%w: what snapshot %s keeps would be lost for good: to delete it add --yes", drivebay.ErrRefused, render.Clean(args[0]))
		}
		err = a.untilDone(cmd.Context(), client, func() error { return client.DeleteSnapshot(cmd.Context(), args[0]) })
		if err != nil {
			return err
		}
		return a.print(fmt.Sprintf("snapshot %s deleted\n", render.Clean(args[0])))
	}
	return cmd
}

func (a *app) volumeSnapshotForgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot-forget SNAPSHOT", Short: "Drop the record of a snapshot whose drive is gone", Args: cobra.ExactArgs(1),
		Long: "Drops the record of a snapshot whose drive is gone for good, by its id or name. If the drive\ncomes back, the snapshot is found again. It is refused while the drive is ONLINE. Without\n--yes nothing is done.",
	}
	yes := cmd.Flags().Bool("yes", false, "yes, its drive is gone for good")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if !*yes {
			return fmt.Errorf("%w: snapshot %s would be forgotten: to forget it add --yes", drivebay.ErrRefused, render.Clean(args[0]))
		}
		if err := client.ForgetSnapshot(cmd.Context(), args[0]); err != nil {
			return err
		}
		return a.print(fmt.Sprintf("snapshot %s forgotten\n", render.Clean(args[0])))
	}
	return cmd
}
