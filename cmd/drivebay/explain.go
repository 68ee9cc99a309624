package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain VOLUME|DRIVE", Short: "Say why a volume or a drive is as it is, and what to do", Args: cobra.ExactArgs(1),
		Long: "Says why a drive has the health that it has: the rules, the evidence, what could not be read.\nOf a volume it says what is wrong with it and what that stands on, down to the evidence of\nthe drives under it.",
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		return a.explain(cmd.Context(), args[0], out)
	}
	return cmd
}

func (a *app) explain(ctx context.Context, what string, out *output) error {
	src, d, err := a.pick(ctx, what)
	_, v, none := a.pickVolume(ctx, what) // where no volumes are known at all, it is a drive
	switch {
	case v != nil && d != nil && v.ID != what && d.ID != what:
		return fmt.Errorf("%q: %w: it is drive %s and volume %s: give the id", what, drivebay.ErrAmbiguous, d.ID, v.ID)
	case v != nil && (d == nil || v.ID == what):
		detail, err := a.volume(ctx, v.ID)
		if err != nil {
			return err
		}
		return a.printAs(out, detail, func(s render.Style) string { return render.ExplainVolume(&detail.VolumeView, s) })
	case errors.Is(err, drivebay.ErrNotFound) && errors.Is(none, drivebay.ErrAmbiguous):
		return none
	case errors.Is(err, drivebay.ErrNotFound) && errors.Is(none, drivebay.ErrNotFound):
		return fmt.Errorf("%w; nor is there a volume that is called so", err)
	case err != nil:
		return err
	}
	if d, err = src.Drive(ctx, d.ID); err != nil {
		return err
	}
	return a.printAs(out, d, func(s render.Style) string { return render.Explain(d, s) })
}
