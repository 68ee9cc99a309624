package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// eventPage is how many events are asked for at a time.
const eventPage = 1000

func (a *app) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened",
		Long: "Shows what happened to the drives and volumes, oldest first. With -o json each line is one event.",
	}
	out := outputFlag(cmd, "text", "json")
	follow := cmd.Flags().BoolP("follow", "f", false, "go on with what happens from now on")
	drive := cmd.Flags().String("drive", "", "only events of this drive")
	last := cmd.Flags().IntP("last", "n", 100, "how many of the newest events to begin with; 0 is all that are kept")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if *last < 0 {
			return usage("--last %d: want 0 or more", *last)
		}
		src, id, err := a.eventSource(cmd.Context(), *drive)
		if err != nil {
			return err
		}
		after, err := a.pastEvents(cmd.Context(), src, id, *last, out)
		if err != nil || !*follow {
			return err
		}
		return a.follow(cmd.Context(), src, id, after, out)
	}
	return cmd
}

func (a *app) eventSource(ctx context.Context, drive string) (source, string, error) {
	if drive == "" {
		src, err := a.source()
		return src, "", err
	}
	src, d, err := a.pick(ctx, drive)
	if err != nil {
		return nil, "", err
	}
	return src, d.ID, nil
}

// pastEvents prints the newest of the events that are kept, and returns the
// number of the last one.
func (a *app) pastEvents(ctx context.Context, src source, id string, last int, out *output) (uint64, error) {
	var all []drivebay.Event
	after := uint64(0)
	for {
		page, err := src.Events(ctx, after, eventPage)
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Seq
		all = append(all, ofDrive(page, id)...)
	}
	if last > 0 && len(all) > last {
		all = all[len(all)-last:]
	}
	return after, a.printEvents(all, out)
}

func (a *app) follow(ctx context.Context, src source, id string, after uint64, out *output) error {
	for {
		page, err := src.WaitEvents(ctx, after)
		if ctx.Err() != nil {
			return nil // told to stop
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if len(page) == 0 {
			continue
		}
		after = page[len(page)-1].Seq
		if err := a.printEvents(ofDrive(page, id), out); err != nil {
			return err
		}
	}
}

func ofDrive(list []drivebay.Event, id string) []drivebay.Event {
	var out []drivebay.Event
	for _, e := range list {
		if id == "" || e.Drive == id {
			out = append(out, e)
		}
	}
	return out
}

func (a *app) printEvents(list []drivebay.Event, out *output) error {
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
