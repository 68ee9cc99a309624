package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/follow"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/reference"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
)

// eventPage is how many events one call returns at most.
const eventPage = 1000

// eventFlags are the flags of `drivebay events`.
type eventFlags struct {
	follow, watch        bool
	drive, volume, since string
	kinds                []string
	last                 int
}

func (a eventCommands) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "Show the events of drives and volumes",
		Long: "Shows the events of drives and volumes, oldest first. With -o json each line is one event. With\n" +
			"--watch the command continues with new events as they happen, each once, also after a restart of\n" +
			"the daemon. docs/events.md lists the kinds.",
		Example: "  drivebay events --since 1h --kind HealthChanged,FindingAdded\n  drivebay events --since 2026-11-24T10:00 --volume data-1\n  drivebay events --drive 13 --watch",
	}
	out := outputFlag(cmd, "text", "json")
	var flags eventFlags
	f := cmd.Flags()
	f.BoolVarP(&flags.watch, "watch", "w", false, "continue with new events as they happen")
	f.BoolVarP(&flags.follow, "follow", "f", false, "the same as --watch")
	f.StringVar(&flags.drive, "drive", "", "show only events of this drive; for a forgotten drive give the full ID")
	f.StringVar(&flags.volume, "volume", "", "show only events of this volume; for a deleted volume give the full ID")
	f.StringVar(&flags.since, "since", "", "show only events since this time (2026-11-24T10:00, local time; with Z at its end UTC) or duration (90m, 1h, 2d)")
	f.StringSliceVar(&flags.kinds, "kind", nil, "show only events of this kind; can be repeated")
	f.IntVarP(&flags.last, "last", "n", 100, "number of the newest events to show, without --since; 0 shows all stored events")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.Changed("since") && !f.Changed("last") {
			flags.last = 0
		}
		return a.showEvents(cmd.Context(), &flags, out)
	}
	return cmd
}

func (a eventCommands) showEvents(ctx context.Context, flags *eventFlags, out *output) error {
	want, err := a.eventFilter(flags)
	if err != nil {
		return err
	}
	src, err := a.eventSource(ctx, flags, want)
	if err != nil {
		return err
	}
	reader := follow.New(src)
	all, err := reader.Kept(ctx)
	if err != nil {
		return err
	}
	if all = want.Apply(all); flags.last > 0 && len(all) > flags.last {
		all = all[len(all)-flags.last:]
	}
	if err := a.printEvents(all, out); err != nil || !flags.follow && !flags.watch {
		return err
	}
	return reader.Follow(ctx, a.daemonAway(), func(list []drivebay.Event) error { return a.printEvents(want.Apply(list), out) })
}

// eventFilter reads the flags that need no daemon.
func (a eventCommands) eventFilter(flags *eventFlags) (*follow.Filter, error) {
	want := new(follow.Filter)
	switch {
	case flags.last < 0:
		return nil, usage("--last %d: want 0 or more", flags.last)
	case flags.drive != "" && flags.volume != "":
		return nil, usage("--drive and --volume cannot be used together")
	}
	if flags.since != "" {
		var err error
		if want.Since, err = follow.ParseSince(flags.since, a.now()); err != nil {
			return nil, usage("--since: %w", err)
		}
	}
	known := reference.EventKinds()
	if unknown := want.SetKinds(flags.kinds, known); unknown != "" {
		var names []string
		for _, k := range known {
			names = append(names, string(k))
		}
		if near, ok := config.Nearest(unknown, names); ok {
			return nil, usage("--kind %q: there is no such kind: did you mean %q?", unknown, near)
		}
		return nil, usage("--kind %q: there is no such kind: docs/events.md lists the kinds, for example %s", unknown, drivebay.EventHealth)
	}
	return want, nil
}

// eventSource returns where events come from, and adds the drive or volume to the filter. One that is
// not known any more can have events: its argument is taken for the full ID.
func (a eventCommands) eventSource(ctx context.Context, flags *eventFlags, want *follow.Filter) (source, error) {
	switch {
	case flags.drive != "":
		src, d, err := a.pick(ctx, flags.drive)
		if err == nil {
			want.Drive = d.ID
		} else if errors.Is(err, drivebay.ErrNotFound) && src != nil {
			a.noteUnknown("drive", flags.drive)
			want.Drive, err = flags.drive, nil
		}
		return src, err
	case flags.volume != "":
		client, v, err := a.pickVolume(ctx, flags.volume)
		if err == nil {
			want.Volume = v.ID
		} else if errors.Is(err, drivebay.ErrNotFound) && client != nil {
			a.noteUnknown("volume", flags.volume)
			want.Volume, err = flags.volume, nil
		}
		return client, err
	}
	return a.source()
}

func (a eventCommands) noteUnknown(kind, what string) {
	fmt.Fprintf(a.err, "note: no %s %s is known now: showing the events of the ID %s\n", kind, render.Clean(what), render.Clean(what))
}

func (a eventCommands) printEvents(list []drivebay.Event, out *output) error {
	if out.format == "json" {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		for _, e := range list {
			if err := enc.Encode(e); err != nil {
				return fmt.Errorf("write event %d: %w", e.Seq, err)
			}
		}
		return nil
	}
	s, err := a.style()
	if err != nil {
		return err
	}
	return a.print(render.Events(list, s))
}
