package main

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a *app) healCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "heal VOLUME", Short: "Put right what keeps a volume from being used", Args: cobra.ExactArgs(1),
		Long:    "Goes through the table of repairs (docs/repairs.md) and does what is called for: what was\nunmounted by accident is mounted again, a drive that is back under another name is taken in.\nNothing of it can lose data, and nothing is unmounted by force. Exit status 1 if something\ncould not be repaired: the findings that remain are named.",
		Example: "  drivebay heal data-1 --dry-run\n  drivebay heal data-1 --option noatime",
	}
	var body api.HealBody
	cmd.Flags().BoolVar(&body.DryRun, "dry-run", false, "tell what would be done, and do nothing")
	cmd.Flags().BoolVar(&body.Fsck, "fsck", false, "have the filesystem repaired by its own program, which nobody may have mounted")
	cmd.Flags().StringSliceVar(&body.Options, "option", nil, "a mount option that it was staged with; they are kept nowhere")
	secret, out := newPassphraseFlag(cmd, "the passphrase of an encrypted volume is in this file"), outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := out.check()
		if err == nil {
			body.Passphrase, err = secret.read(a.in)
		}
		if err != nil {
			return err
		}
		client, v, err := a.pickVolume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		var report drivebay.HealReport
		err = a.untilDone(cmd.Context(), client, func() (err error) {
			report, err = client.HealVolume(cmd.Context(), v.ID, body)
			return err
		})
		if err == nil {
			err = a.printAs(out, report, func(render.Style) string { return healed(&v.Volume, report) })
		}
		if err == nil && (!body.DryRun || len(report.Steps) == 0) {
			err = unhealed(&v.Volume, report)
		}
		return err
	}
	return cmd
}

// healed tells what was done, a line for each repair.
func healed(v *drivebay.Volume, r drivebay.HealReport) string {
	if len(r.Steps) == 0 && len(r.Remaining) == 0 {
		return calledVolume(v) + ": there is nothing to repair\n"
	}
	var b strings.Builder
	if len(r.Steps) == 0 {
		fmt.Fprintf(&b, "%s: no repair applies\n%s", calledVolume(v), remaining(r))
		return b.String()
	}
	b.WriteString(calledVolume(v) + ":\n")
	for _, s := range r.Steps {
		word, then := "done", s.Done
		switch {
		case s.Failed != "":
			word, then = "not done", s.Failed
		case r.DryRun:
			word = "to do"
		}
		fmt.Fprintf(&b, "  %-8s  %s\n            why: %s\n", word, s.Repair, render.Clean(s.Why))
		if then != "" {
			fmt.Fprintf(&b, "            %s\n", render.Clean(then))
		}
	}
	return b.String() + remaining(r)
}

// remaining lists the findings that healing does not end.
func remaining(r drivebay.HealReport) string {
	var b strings.Builder
	for _, f := range r.Remaining {
		fmt.Fprintf(&b, "  remains   %v %s\n            %s\n", f.Severity, f.Reason, render.Clean(f.Message))
	}
	return b.String()
}

// unhealed is an error where something could not be repaired. A finding that only
// degrades the volume may end by itself after a repair: a mirror copies what it missed.
func unhealed(v *drivebay.Volume, r drivebay.HealReport) error {
	for _, s := range r.Steps {
		if s.Failed != "" {
			return fmt.Errorf("%s: %w: %s", calledVolume(v), drivebay.ErrRefused, "not all of it could be repaired")
		}
	}
	if c := drivebay.Condition(r.Remaining); c.Abnormal() && (len(r.Steps) == 0 || c.Severity() > drivebay.SeverityDegraded) {
		return fmt.Errorf("%s: %w: `drivebay heal` cannot repair %s; `drivebay explain %s` says what to do", calledVolume(v), drivebay.ErrRefused, c[0].Reason, v.ID)
	}
	return nil
}
