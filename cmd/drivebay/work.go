package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/progress"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

const (
	workTime = 2 * time.Second // after which the progress of an operation is shown
	workPoll = time.Second
)

// workBar shows the work on one volume while a call for the volume waits for its end.
type workBar struct {
	mu    sync.Mutex // of the meter
	meter *progress.Meter
	end   func()
}

// showWork starts a workBar for the volume with this ID or name.
func (a *app) showWork(ctx context.Context, client *api.Client, what string) *workBar {
	ctx, cancel := context.WithCancel(ctx)
	w, over := &workBar{meter: a.meter()}, make(chan struct{})
	w.end = func() { cancel(); <-over; _ = w.meter.End() }
	go func() {
		defer close(over)
		for wait := workTime; ; wait = workPoll {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			if v, err := client.Volume(ctx, what); err == nil && (v.ID == what || v.Name == what) && v.Work != "" {
				w.show(&v.VolumeView)
			}
		}
	}()
	return w
}

func (w *workBar) show(v *drivebay.VolumeView) {
	w.mu.Lock()
	defer w.mu.Unlock()
	label := v.Work + " of " + render.CalledVolume(&v.Volume)
	if v.Progress != nil {
		_ = w.meter.Bytes(label, *v.Progress)
		return
	}
	_ = w.meter.Elapsed(label)
}

func (w *workBar) line(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.meter.Line(text)
}

func (a volumeCommands) scrubCommand() *cobra.Command {
	cmd := a.onVolume("scrub VOLUME", "Check the filesystem of a volume now, read-only",
		"is being checked; `drivebay volume show {volume}` shows the verdict", (*api.Client).ScrubVolume)
	cmd.Long = "Checks the filesystem of a volume now. The check repairs nothing and writes nothing. One check of\na mounted filesystem can be wrong: a verdict counts when several checks in a row agree."
	wait, run := cmd.Flags().Bool("wait", false, "wait for the verdict; the exit status is 1 if the filesystem is corrupted"), cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *wait {
			return a.scrub(cmd.Context(), args[0])
		}
		return run(cmd, args)
	}
	return cmd
}

// scrub checks a filesystem and waits for the verdict.
func (a volumeCommands) scrub(ctx context.Context, what string) error {
	v, err := a.volume(ctx, what)
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	var before time.Time
	if last := lastScrub(v); last != nil {
		before = last.At
	}
	if err := client.ScrubVolume(ctx, v.ID); err != nil {
		return err
	}
	bar := a.showWork(ctx, client, v.ID)
	defer bar.end()
	for idle := 0; idle < 10; idle++ { // the check may end before its verdict is recorded
		if v, err = client.Volume(ctx, v.ID); err != nil {
			return err
		}
		if last := lastScrub(v); last != nil && !last.At.Equal(before) {
			return a.scrubbed(&v.Volume, last)
		}
		if v.Work == "scrub" {
			idle = 0
		}
		select {
		case <-time.After(workPoll / 4):
		case <-ctx.Done():
			return fmt.Errorf("%s: the wait for the check ended, the check continues: %w", render.CalledVolume(&v.Volume), ctx.Err())
		}
	}
	return fmt.Errorf("%s: the check ended without a verdict; the log of the daemon has the cause", render.CalledVolume(&v.Volume))
}

// lastScrub returns the newest verdict on a filesystem; nil: it was never checked.
func lastScrub(v *api.VolumeDetail) *drivebay.Scrub {
	if v.Facts == nil || v.Facts.FS == nil {
		return nil
	}
	return v.Facts.FS.Scrub
}

func (a volumeCommands) scrubbed(v *drivebay.Volume, s *drivebay.Scrub) error {
	if s.Corrupt > 0 {
		return fmt.Errorf("%s: %d checks in a row found its filesystem corrupted: %s", render.CalledVolume(v), s.Corrupt, render.Clean(s.Text))
	}
	return a.print(render.CalledVolume(v) + ": no error found in its filesystem\n")
}
