package main

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
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
	return a.lossy(lossy{
		use: "snapshot-delete SNAPSHOT", short: "Remove a snapshot",
		long:  "Removes a snapshot, by its id or name. Without --yes nothing is done.",
		sure:  "yes, what it keeps may be lost",
		about: a.snapshotAtStake, refusal: "what %s keeps would be lost for good: to delete it add --yes",
		do: (*api.Client).DeleteSnapshot, done: "deleted",
	})
}

func (a *app) volumeSnapshotForgetCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "snapshot-forget SNAPSHOT", short: "Drop the record of a snapshot whose drive is gone",
		long:  "Drops the record of a snapshot whose drive is gone for good, by its id or name. If the drive\ncomes back, the snapshot is found again. It is refused while the drive is ONLINE. Without\n--yes nothing is done.",
		sure:  "yes, its drive is gone for good",
		about: a.snapshotAtStake, refusal: "%s would be forgotten: to forget it add --yes",
		do: (*api.Client).ForgetSnapshot, done: "forgotten",
	})
}

func (a *app) snapshotAtStake(_ context.Context, what string) (*api.Client, atStake, error) {
	client, err := a.client()
	called := "snapshot " + render.Clean(what)
	return client, atStake{called, called}, err
}
