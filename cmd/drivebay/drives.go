package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/follow"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// filter holds the health and the types of the drives to show.
type filter struct{ health, types []string }

func (f *filter) keep(d *drivebay.Drive) bool {
	return (len(f.health) == 0 || slices.Contains(f.health, d.Health.String())) &&
		(len(f.types) == 0 || slices.Contains(f.types, d.Type.String()))
}

// check converts the words to upper case and refuses unknown ones.
func (f *filter) check() error {
	for i, w := range f.health {
		f.health[i] = strings.ToUpper(w)
		if err := new(drivebay.Health).UnmarshalText([]byte(f.health[i])); err != nil {
			return usage("--health: %w", err)
		}
	}
	for i, w := range f.types {
		f.types[i] = strings.ToUpper(w)
		if err := new(drivebay.Type).UnmarshalText([]byte(f.types[i])); err != nil {
			return usage("--type: %w", err)
		}
	}
	return nil
}

func (a driveCommands) drivesCommand() *cobra.Command {
	var want filter
	var again bool
	cmd := &cobra.Command{
		Use:   "drives",
		Short: "List the drives and their health",
		Example: "  drivebay drives --health suspect,bad\n" +
			"  drivebay drives --watch\n" +
			"  drivebay drives --columns bay,health,volumes,why --sort -health\n" +
			"  drivebay drives -o 'jsonpath={.drives[?(@.health==\"BAD\")].id}'\n" +
			"  drivebay drives --root ./recording -o json",
	}
	out := newListFlags(cmd, render.DriveColumns())
	cmd.Long = "Lists the drives. With -x it prints only what is wrong with them, one line each, and the exit status is:\n" + exitStatuses
	short := cmd.Flags().BoolP("wrong", "x", false, "print only what is wrong, one line each, and set the exit status")
	cmd.Flags().StringSliceVar(&want.health, "health", nil, "show only drives with this health: GOOD, SUSPECT, BAD, UNKNOWN")
	cmd.Flags().StringSliceVar(&want.types, "type", nil, "show only drives of this type: HDD, SSD, NVME")
	cmd.Flags().BoolVarP(&again, "watch", "w", false, "print the list again after every change")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := want.check(); err != nil {
			return err
		}
		src, err := a.source()
		if err != nil {
			return err
		}
		if *short {
			return cannotTell(a.wrongDrives(cmd.Context(), src, want))
		}
		s, err := src.Drives(cmd.Context())
		if err != nil {
			return err
		}
		if again {
			draw := func(s *drivebay.Snapshot) error { return a.printDrives(cmd.Context(), src, s, want, out) }
			return watch(cmd.Context(), a.app, s, draw, func(s *drivebay.Snapshot) (*drivebay.Snapshot, error) { return src.Wait(cmd.Context(), s.Seq) })
		}
		return a.printDrives(cmd.Context(), src, s, want, out)
	}
	return cmd
}

func (a driveCommands) refreshCommand() *cobra.Command {
	return &cobra.Command{
		Use: "refresh", Short: "Have the daemon list the drives and read all of them now",
		RunE: func(cmd *cobra.Command, _ []string) error {
			src, err := a.source()
			if err != nil {
				return err
			}
			if err := src.Refresh(cmd.Context()); err != nil {
				return err
			}
			return a.print("the drives are listed; every drive that is awake is being read\n")
		},
	}
}

// clearScreen moves the cursor to the top left and clears the screen (ECMA-48 CUP, ED).
const clearScreen = "\x1b[H\x1b[2J"

// watch draws s and each value that follows, until ctx ends. While the daemon does not answer it
// waits, and then draws the state of the daemon that answers.
func watch[T any](ctx context.Context, a *app, s *T, draw func(*T) error, following func(*T) (*T, error)) error {
	for {
		if a.tty {
			if err := a.print(clearScreen); err != nil {
				return err
			}
		}
		if err := draw(s); err != nil {
			return err
		}
		var err error
		if s, err = follow.Next(ctx, a.daemonAway(), func() (*T, error) { return following(s) }, func() (*T, error) { return following(new(T)) }); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// daemonAway returns what a command that waits for the daemon says when the daemon ends and is back.
func (a *app) daemonAway() follow.Away {
	return follow.Away{
		Lost: func(err error) {
			fmt.Fprintf(a.err, "note: the daemon does not answer, waiting for it: %s\n", render.Clean(err.Error()))
		},
		Back: func() { fmt.Fprintln(a.err, "note: the daemon answers again") },
	}
}

func (a driveCommands) printDrives(ctx context.Context, src source, s *drivebay.Snapshot, want filter, out *listFlags) error {
	volumes, err := volumesOn(ctx, src)
	if err != nil {
		fmt.Fprintln(a.err, "note: the volumes on the drives are not known: "+render.Clean(err.Error()))
	}
	shown := *s
	shown.Drives = slices.DeleteFunc(render.SortDrives(s.Drives, volumes, out.layout()), func(d drivebay.Drive) bool { return !want.keep(&d) })
	err = a.printAs(out.output, shown, func(st render.Style) string {
		return render.Drives(shown.Drives, volumes, st, out.layout())
	})
	a.notes(s)
	return err
}

// wrongDrives prints what is wrong with the drives, and what the daemon has not read.
func (a driveCommands) wrongDrives(ctx context.Context, src source, want filter) (err error) {
	var in overview.Input
	if client, ok := src.(*api.Client); ok {
		_, in, err = overview.Ask(ctx, client)
	} else { // reading the drives of this machine takes its time
		in.Drives, err = src.Drives(ctx)
	}
	if err != nil {
		return err
	}
	if in.Replication = ""; in.Drives != nil {
		in.Drives.Drives = slices.DeleteFunc(render.Order(in.Drives.Drives), func(d drivebay.Drive) bool { return !want.keep(&d) })
	}
	return a.printWrong(overview.Of(in), "drives", func(i overview.Item) bool { return i.Kind != "volume" })
}

// printWrong prints the items of one kind that are wrong, and returns the exit status.
func (a *app) printWrong(o overview.Overview, what string, keep func(overview.Item) bool) error {
	style, err := a.style()
	if err != nil {
		return err
	}
	wrong, worst := []overview.Item{}, overview.Fine
	for _, i := range o.Wrong {
		if keep(i) {
			wrong, worst = append(wrong, i), max(worst, i.Verdict)
		}
	}
	if err := a.print(shortText(wrong, what, style)); err != nil {
		return err
	}
	return verdictError(worst)
}

// volumesOn returns the volumes that the source knows; nil: it knows none, because it is no daemon or one
// that only watches drives.
func volumesOn(ctx context.Context, src source) (*drivebay.VolumeSet, error) {
	client, ok := src.(*api.Client)
	if !ok {
		return nil, nil
	}
	set, err := client.Volumes(ctx)
	if errors.Is(err, drivebay.ErrNoSupport) {
		return nil, nil
	}
	return set, err
}

// notes prints to standard error what could not be listed.
func (a *app) notes(s *drivebay.Snapshot) {
	if !s.Complete {
		fmt.Fprintln(a.err, "note: the list of drives is incomplete")
	}
	for _, p := range s.Problems {
		fmt.Fprintln(a.err, "note: "+render.Clean(p))
	}
}
