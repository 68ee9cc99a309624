package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// exitStatuses describes the exit statuses of commands that report a verdict.
const exitStatuses = "0 nothing is wrong; 3 degraded: redundancy, space or health is lost; 4 data is at risk:\n" +
	"it cannot be used, or it is on a BAD drive alone; 5 cannot tell: the daemon does not answer, is not\n" +
	"ready or has not read something. The worst one counts: 4, 3, 5, 0."

// exitError is an error with an exit status of its own; without err nothing is printed.
type exitError struct {
	err  error
	code int
}

func (e exitError) Error() string { return fmt.Sprint(e.err) }
func (e exitError) Unwrap() error { return e.err }

// verdictError returns the error that ends a command with the exit status of a verdict.
func verdictError(v overview.Verdict) error {
	if v == overview.Fine {
		return nil
	}
	return exitError{code: v.Exit()}
}

// cannotTell gives an error the exit status of a command that could not find out. An error in the
// command line stays one.
func cannotTell(err error) error {
	var wrong usageError
	var ends exitError
	if err == nil || errors.As(err, &wrong) || errors.As(err, &ends) {
		return err
	}
	return exitError{err: err, code: overview.CannotTell.Exit()}
}

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show on one screen what is wrong, what is being done, and what to do next",
		Long: "Shows on one screen whether anything is wrong with the drives, the volumes or the daemon, what the\n" +
			"daemon is doing, what waits for a person, and the next command. `drivebay` without a command does\n" +
			"the same. The command reads no drive. With -x it prints only what is wrong, one line each.\n\n" +
			"Exit status: " + exitStatuses,
		Example: "  drivebay status\n  drivebay status -x || mail -s \"drives of $(hostname)\" root\n  drivebay status -o json",
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	short := cmd.Flags().BoolP("wrong", "x", false, "print only what is wrong, one line each")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return cannotTell(a.showStatus(cmd.Context(), out, *short))
	}
	return cmd
}

// state is what `drivebay status` prints as JSON.
type state struct {
	api.Status
	overview.Overview
}

func (a *app) showStatus(ctx context.Context, out *output, short bool) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	st, in, err := overview.Ask(ctx, client)
	if err != nil {
		return err
	}
	o := overview.Of(in)
	err = a.printAs(out, state{st, o}, func(s render.Style) string {
		if short {
			return shortText(o.Wrong, "drives and volumes", s)
		}
		return render.Overview(o, s) + newerText(st)
	})
	if err == nil && !short && in.Drives != nil {
		a.notes(in.Drives)
	}
	if err == nil {
		err = verdictError(o.Verdict)
	}
	return err
}

func shortText(wrong []overview.Item, what string, s render.Style) string {
	if len(wrong) == 0 {
		return render.AllFine(what)
	}
	return render.WrongLines(wrong, s)
}

// newerText reports that the record store is older than the drives.
func newerText(st api.Status) string {
	var b strings.Builder
	for _, id := range st.Newer {
		b.WriteString("note: volume " + id + " on its drive is newer than in the record store: the store was restored from a backup or rolled back; the state on the drive is used\n")
	}
	return b.String()
}

// alone is `drivebay` without a command: the status if a daemon answers, else the help.
func (a *app) alone(cmd *cobra.Command, _ []string) error {
	soon, cancel := context.WithTimeout(cmd.Context(), overview.AskTime)
	defer cancel()
	_, err := a.dial().Status(soon)
	if err == nil {
		return cannotTell(a.showStatus(cmd.Context(), &output{format: "text"}, false))
	}
	if help := cmd.Help(); help != nil {
		return help
	}
	fmt.Fprintln(a.err, "note: "+render.Clean(err.Error()))
	return nil
}
