package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/local"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain VOLUME|DRIVE", Short: "Explain the state of a volume or a drive, and what to do", Args: cobra.ExactArgs(1),
		Long: "Explains the health of a drive: the rules, the evidence, and the pages that could not be read.\nFor a volume, explains what is wrong with it and which facts show that, down to the evidence of\nthe drives below it.",
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.explain(cmd.Context(), args[0], out)
	}
	return cmd
}

func (a *app) explain(ctx context.Context, what string, out *output) error {
	src, d, err := a.pick(ctx, what)
	_, v, none := a.pickVolume(ctx, what) // fails where volumes are not known: then it is a drive
	switch {
	case v != nil && d != nil && v.ID != what && d.ID != what:
		return fmt.Errorf("%q: %w: it names drive %s and volume %s: give the ID", what, drivebay.ErrAmbiguous, d.ID, v.ID)
	case v != nil && (d == nil || v.ID == what):
		detail, err := a.volume(ctx, v.ID)
		if err != nil {
			return err
		}
		return a.printAs(out, detail, func(s render.Style) string {
			s.Machine = machineOf(ctx, src)
			return render.ExplainVolume(&detail.VolumeView, s)
		})
	case errors.Is(err, drivebay.ErrNotFound) && errors.Is(none, drivebay.ErrAmbiguous):
		return none
	case errors.Is(err, drivebay.ErrNotFound) && errors.Is(none, drivebay.ErrNotFound):
		return fmt.Errorf("%w; no volume has this ID or name either", err)
	case err != nil:
		return err
	}
	if d, err = src.Drive(ctx, d.ID); err != nil {
		return err
	}
	return a.printAs(out, d, func(s render.Style) string {
		s.Machine = machineOf(ctx, src)
		return render.Explain(d, s)
	})
}

// machineOf returns the machine that a source has the drives of. An explanation is complete without it, so
// an error leaves it out.
func machineOf(ctx context.Context, src source) drivebay.Machine {
	if l, ok := src.(*local.Machine); ok && l.Seen() != nil {
		return l.Seen().Machine
	}
	if src == nil {
		return drivebay.Machine{}
	}
	s, err := src.Drives(ctx)
	if err != nil {
		return drivebay.Machine{}
	}
	return s.Machine
}
