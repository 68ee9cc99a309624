package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/progress"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

var selfTestKinds = []string{"short", "long", "abort"}

func (a driveCommands) selftestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "selftest DRIVE short|long|abort", Short: "Start or abort a self-test of a drive", Args: cobra.ExactArgs(2),
		Long: "Starts a self-test of a drive, or aborts one. The drive can be used during the test.\n`drivebay smart DRIVE` shows the result.",
	}
	wait := cmd.Flags().Bool("wait", false, "wait for the result; the exit status is 1 if the test failed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind := args[1]
		if !slices.Contains(selfTestKinds, kind) {
			return usage("%q: want %s", kind, strings.Join(selfTestKinds, ", "))
		}
		src, d, err := a.drive(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		before := newestTest(d)
		if err := src.SelfTest(cmd.Context(), d.ID, kind); err != nil {
			return err
		}
		if kind == "abort" {
			return a.print(fmt.Sprintf("drive %s: self-test aborted\n", d.ID))
		}
		if !*wait {
			return a.print(fmt.Sprintf("drive %s: %s self-test started\n", d.ID, kind))
		}
		return a.awaitSelfTest(cmd.Context(), src, d.ID, before)
	}
	return cmd
}

// newestTest returns the newest entry of a drive's self-test log that has ended.
func newestTest(d *drivebay.Drive) drivebay.SelfTest {
	if d.Evidence != nil {
		for _, t := range d.Evidence.SelfTests {
			if t.Result != drivebay.SelfTestRunning {
				t.LBA = nil
				return t
			}
		}
	}
	return drivebay.SelfTest{}
}

// awaitSelfTest waits until the drive has logged the result of a test.
func (a driveCommands) awaitSelfTest(ctx context.Context, src source, id string, before drivebay.SelfTest) error {
	seq, seen, bar := uint64(0), false, a.meter()
	for {
		s, err := src.Wait(ctx, seq)
		if err != nil {
			return fmt.Errorf("drive %s: the wait for the self-test ended, the self-test continues: %w", id, err)
		}
		seq = s.Seq
		d, err := src.Drive(ctx, id)
		if err != nil {
			return err
		}
		if d.Status == drivebay.StatusOffline {
			return fmt.Errorf("drive %s: the drive went offline during its self-test", id)
		}
		if d.Evidence == nil {
			continue
		}
		newest, run, label := newestTest(d), d.Evidence.RunningTest(), "self-test of drive "+id
		switch {
		case run != nil && run.Done != nil:
			seen, err = true, bar.Percent(label, *run.Done)
		case run != nil: // SAS drives report no percentage
			seen, err = true, bar.Elapsed(label)
		case newest != before:
			if err := bar.End(); err != nil {
				return err
			}
			return a.selfTestEnded(id, newest)
		case seen:
			return fmt.Errorf("drive %s: the self-test ended, and the drive logged no result", id)
		}
		if err != nil {
			return err
		}
	}
}

func (a driveCommands) selfTestEnded(id string, t drivebay.SelfTest) error {
	text := fmt.Sprintf("drive %s: %s self-test %s: %s", id, t.Kind, t.Result, render.Clean(t.Text))
	if t.Result != drivebay.SelfTestPassed {
		return fmt.Errorf("%s", text)
	}
	return a.print(text + "\n")
}

// meter returns a meter of progress. It writes to standard error: standard output has the result.
func (a *app) meter() *progress.Meter { return &progress.Meter{Out: a.err, TTY: a.tty, Now: a.now} }
