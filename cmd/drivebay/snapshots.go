package main

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a volumeCommands) volumeSnapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use: "snapshot VOLUME NAME", Short: "Create a snapshot of a thin volume", Args: cobra.ExactArgs(2),
		Long: "Creates a snapshot of a thin volume and prints its ID. A second call with the same name prints\nthe same ID. Programs that write to the volume meanwhile are not notified.",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, v, err := a.pickVolume(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var made drivebay.VolumeSnapshot
			err = a.untilDone(cmd.Context(), client, v.ID, func() (err error) {
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

func (a volumeCommands) volumeSnapshotsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "snapshots", Short: "List the snapshots of volumes"}
	out := outputFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
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

func (a volumeCommands) volumeSnapshotDeleteCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "snapshot-delete SNAPSHOT", short: "Delete a snapshot",
		long:  "Deletes a snapshot, given by its ID or name. Without --yes the command does nothing.",
		sure:  "confirm the loss of the data of the snapshot",
		about: a.snapshotAtStake, refusal: "the data of %s would be lost permanently; to delete it, add --yes",
		do: (*api.Client).DeleteSnapshot, done: "deleted", plan: plan.DeleteSnapshot,
	})
}

func (a volumeCommands) volumeSnapshotForgetCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "snapshot-forget SNAPSHOT", short: "Delete the record of a snapshot whose drive is gone",
		long:  "Deletes the record of a snapshot whose drive is gone permanently. The snapshot is given by its ID\nor name. If the drive comes back, drivebay finds the snapshot again. The command refuses while the\ndrive is ONLINE. Without --yes it does nothing.",
		sure:  "confirm that its drive is gone permanently",
		about: a.snapshotAtStake, refusal: "%s would be forgotten; to forget it, add --yes",
		do: (*api.Client).ForgetSnapshot, done: "forgotten", plan: plan.ForgetSnapshot,
	})
}

func (a volumeCommands) snapshotAtStake(ctx context.Context, what string) (*api.Client, atStake, error) {
	client, err := a.client()
	if err != nil {
		return nil, atStake{}, err
	}
	set, err := client.Volumes(ctx)
	if err != nil {
		return nil, atStake{}, err
	}
	s, err := set.ResolveSnapshot(what, false)
	if err != nil {
		return nil, atStake{}, err
	}
	called := fmt.Sprintf("snapshot %s (%s)", s.ID, render.Clean(s.Name))
	return client, atStake{s.ID, called, called}, nil
}
