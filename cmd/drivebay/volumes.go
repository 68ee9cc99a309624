package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a volumeCommands) volumesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "volumes", Short: "List the volumes and their condition",
		Example: "  drivebay volumes --abnormal\n  drivebay volumes --watch\n  drivebay volumes --sort -used\n  drivebay volumes -o json",
	}
	out := newListFlags(cmd, render.VolumeColumns())
	abnormal := cmd.Flags().Bool("abnormal", false, "show only volumes with an abnormal condition")
	again := cmd.Flags().BoolP("watch", "w", false, "print the list again after every change")
	cmd.Long = "Lists the volumes. With -x it prints only what is wrong with them, one line each, and the exit status is:\n" + exitStatuses
	short := cmd.Flags().BoolP("wrong", "x", false, "print only what is wrong, one line each, and set the exit status")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if *short {
			return cannotTell(a.wrongVolumes(cmd.Context(), client))
		}
		set, err := client.Volumes(cmd.Context())
		if err == nil {
			err = nameDrives(cmd.Context(), client, set)
		}
		if err != nil {
			return err
		}
		draw := func(set *drivebay.VolumeSet) error { return a.printVolumes(set, *abnormal, out) }
		if !*again {
			return draw(set)
		}
		return watch(cmd.Context(), a.app, set, draw, func(last *drivebay.VolumeSet) (*drivebay.VolumeSet, error) {
			return nextVolumes(cmd.Context(), client, last)
		})
	}
	return cmd
}

// wrongVolumes prints what is wrong with the volumes, also what is the fault of a drive, and what the daemon has not read.
func (a volumeCommands) wrongVolumes(ctx context.Context, client *api.Client) error {
	st, in, err := overview.Ask(ctx, client)
	if err == nil && in.Volumes == nil && st.Ready() {
		_, err = client.Volumes(ctx) // why there are none
	}
	if err != nil {
		return err
	}
	in.Drives = &drivebay.Snapshot{Complete: true}
	return a.printWrong(overview.Of(in), "volumes", func(i overview.Item) bool { return true })
}

// client returns a client of the daemon: only the daemon knows the volumes.
func (a *app) client() (*api.Client, error) {
	if a.local || a.root != "" {
		return nil, fmt.Errorf("volumes: %w with --local or --root: only the daemon knows the volumes", drivebay.ErrNoSupport)
	}
	return a.dial(), nil
}

// nameDrives adds the drives to the set, so that they are shown by kernel name and bay.
func nameDrives(ctx context.Context, client *api.Client, set *drivebay.VolumeSet) (err error) {
	set.Drives, err = client.Drives(ctx)
	return err
}

// nextVolumes waits for the first set in which a volume differs from the last set.
func nextVolumes(ctx context.Context, client *api.Client, last *drivebay.VolumeSet) (*drivebay.VolumeSet, error) {
	for seq := last.Seq; ; {
		next, err := client.WaitVolumes(ctx, seq)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(next.Volumes, last.Volumes) {
			return next, nameDrives(ctx, client, next)
		}
		seq = next.Seq
	}
}

func (a volumeCommands) printVolumes(set *drivebay.VolumeSet, abnormal bool, out *listFlags) error {
	shown := *set
	shown.Volumes = slices.DeleteFunc(render.SortVolumes(set, out.layout()), func(v *drivebay.VolumeView) bool { return abnormal && !v.Condition.Abnormal() })
	err := a.printAs(out.output, shown, func(s render.Style) string { return render.Volumes(&shown, s, out.layout()) })
	for _, p := range set.Problems {
		fmt.Fprintln(a.err, "note: "+render.Clean(p))
	}
	return err
}

// pickVolume returns a client and the volume that an argument names.
func (a *app) pickVolume(ctx context.Context, what string) (*api.Client, *drivebay.VolumeView, error) {
	return a.pickVolumeAs(ctx, what, false)
}

// pickVolumeAs does what pickVolume does; with whole, what must not be the beginning of a name.
func (a *app) pickVolumeAs(ctx context.Context, what string, whole bool) (*api.Client, *drivebay.VolumeView, error) {
	client, err := a.client()
	if err != nil {
		return nil, nil, err
	}
	set, err := client.Volumes(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, err := named.Volume(set, what, whole)
	return client, v, err
}

// volume does what pickVolume does, and reads the volume with its facts.
func (a *app) volume(ctx context.Context, what string) (*api.VolumeDetail, error) {
	client, v, err := a.pickVolume(ctx, what)
	if err != nil {
		return nil, err
	}
	detail, err := client.Volume(ctx, v.ID)
	if err == nil {
		detail.VolumeView.Facts = detail.Facts
	}
	return detail, err
}

// untilDone repeats a call while the work that it started continues: each of these calls,
// repeated, waits for the end of the first. The progress of the volume is shown meanwhile. If the command is interrupted, the daemon
// continues the work.
func (a *app) untilDone(ctx context.Context, client *api.Client, volume string, call func() error) error {
	bar := a.showWork(ctx, client, volume)
	defer bar.end()
	for said := false; ; {
		err := call()
		if !errors.Is(err, drivebay.ErrPending) {
			return err
		}
		if !said {
			bar.line("note: the operation is in progress; if you stop this command, the daemon continues it: " + render.Clean(err.Error()))
			said = true
		}
		if err := anyChange(ctx, client); err != nil {
			return err
		}
	}
}

// askAgain is the longest time between two of these calls: work may end before the
// command waits for a change, or end without a change.
const askAgain = 5 * time.Second

func anyChange(ctx context.Context, client *api.Client) error {
	set, err := client.Volumes(ctx)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	if _, err := client.WaitVolumes(soon, set.Seq); err != nil && soon.Err() == nil {
		return err
	}
	return ctx.Err()
}
