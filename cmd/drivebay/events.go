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

// eventPage is how many events one call returns at most.
const eventPage = 1000

func (a eventCommands) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "Show the events of drives and volumes",
		Long: "Shows the events of drives and volumes, oldest first. With -o json each line is one event.",
	}
	out := outputFlag(cmd, "text", "json")
	follow := cmd.Flags().BoolP("follow", "f", false, "continue with new events as they happen")
	drive := cmd.Flags().String("drive", "", "show only events of this drive")
	volume := cmd.Flags().String("volume", "", "show only events of this volume; for a deleted volume give the full ID")
	last := cmd.Flags().IntP("last", "n", 100, "number of the newest events to show; 0 shows all stored events")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *last < 0 {
			return usage("--last %d: want 0 or more", *last)
		}
		if *drive != "" && *volume != "" {
			return usage("--drive and --volume cannot be used together")
		}
		src, about, err := a.eventSource(cmd.Context(), *drive, *volume)
		if err != nil {
			return err
		}
		after, err := a.pastEvents(cmd.Context(), src, about, *last, out)
		if err != nil || !*follow {
			return err
		}
		return a.follow(cmd.Context(), src, about, after, out)
	}
	return cmd
}

// eventSource returns where events come from, and a filter for those that are wanted.
func (a eventCommands) eventSource(ctx context.Context, drive, volume string) (source, func(drivebay.Event) bool, error) {
	switch {
	case drive != "":
		src, d, err := a.pick(ctx, drive)
		if err != nil {
			return nil, nil, err
		}
		id := d.ID
		return src, func(e drivebay.Event) bool { return e.Drive == id }, nil
	case volume != "":
		client, v, err := a.pickVolume(ctx, volume)
		if errors.Is(err, drivebay.ErrNotFound) && client != nil { // it may be deleted
			return client, func(e drivebay.Event) bool { return e.Volume == volume }, nil
		}
		if err != nil {
			return nil, nil, err
		}
		return client, func(e drivebay.Event) bool { return e.Volume == v.ID }, nil
	}
	src, err := a.source()
	return src, func(drivebay.Event) bool { return true }, err
}

// pastEvents prints the newest of the events that are kept, and returns the
// number of the last one.
func (a eventCommands) pastEvents(ctx context.Context, src source, about func(drivebay.Event) bool, last int, out *output) (uint64, error) {
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
		all = append(all, those(page, about)...)
	}
	if last > 0 && len(all) > last {
		all = all[len(all)-last:]
	}
	return after, a.printEvents(all, out)
}

func (a eventCommands) follow(ctx context.Context, src source, about func(drivebay.Event) bool, after uint64, out *output) error {
	for {
		page, err := src.WaitEvents(ctx, after)
		if ctx.Err() != nil {
			return nil // interrupted
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if len(page) == 0 {
			continue
		}
		after = page[len(page)-1].Seq
		if err := a.printEvents(those(page, about), out); err != nil {
			return err
		}
	}
}

func those(list []drivebay.Event, about func(drivebay.Event) bool) []drivebay.Event {
	var out []drivebay.Event
	for _, e := range list {
		if about(e) {
			out = append(out, e)
		}
	}
	return out
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
