package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// dryRunFlag adds --dry-run to a command.
func dryRunFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("dry-run", false, "print what the command would do, and change nothing")
}

func (a *app) facts(ctx context.Context) (f plan.Facts, err error) {
	client, err := a.client()
	if err != nil {
		return f, err
	}
	f.Room = func(volume string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
		return client.Room(ctx, volume, q)
	}
	if f.Drives, err = client.Drives(ctx); err != nil {
		return f, err
	}
	f.Volumes, err = client.Volumes(ctx)
	if errors.Is(err, drivebay.ErrNoSupport) {
		f.Volumes, err = &drivebay.VolumeSet{}, nil
	}
	return f, err
}

// dryRun prints what a command about the removal of a drive would do.
func (a driveCommands) dryRun(ctx context.Context, d *drivebay.Drive, do drivebay.LeaveVerb) error {
	f, err := a.facts(ctx)
	if err != nil {
		return err
	}
	p := f.Leave(d, do)
	return a.print(p.Text(fmt.Sprintf("drive %s (%s), serial %s", d.ID, render.Clean(d.Name), render.Clean(d.Serial))))
}

// dryRunVolume prints what a command would do to a volume or snapshot.
func (a volumeCommands) dryRunVolume(ctx context.Context, called, id string, of plan.OfVolume) error {
	f, err := a.facts(ctx)
	if err != nil {
		return err
	}
	return a.print(of(f, id).Text(called))
}

// withDryRun adds --dry-run to a command that takes only a volume.
func (a volumeCommands) withDryRun(cmd *cobra.Command, of plan.OfVolume) *cobra.Command {
	dry, run := dryRunFlag(cmd), cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*dry {
			return run(cmd, args)
		}
		_, v, err := a.pickVolume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.dryRunVolume(cmd.Context(), render.CalledVolume(&v.Volume), v.ID, of)
	}
	return cmd
}
