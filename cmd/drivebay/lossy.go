package main

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// lossy describes a command that loses something for good. Without --yes the command
// does nothing, and its error names what would be lost.
type lossy struct {
	use, short, long string
	sure             string // help text of --yes
	about            func(ctx context.Context, what string) (*api.Client, atStake, error)
	refusal          string // error text; %s is what would be lost
	do               func(*api.Client, context.Context, string) error
	done             string
	plan             plan.OfVolume // what --dry-run prints
}

// atStake is what would be lost: its ID, its short name, and its full description.
type atStake struct{ id, called, told string }

func (a volumeCommands) lossy(l lossy) *cobra.Command {
	cmd := &cobra.Command{Use: l.use, Short: l.short, Long: l.long, Args: cobra.ExactArgs(1)}
	yes, dry := cmd.Flags().Bool("yes", false, l.sure), dryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, it, err := l.about(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *dry {
			return a.dryRunVolume(cmd.Context(), it.called, it.id, l.plan)
		}
		if !*yes {
			return fmt.Errorf("%w: "+l.refusal, drivebay.ErrRefused, it.told)
		}
		err = a.untilDone(cmd.Context(), client, it.id, func() error { return l.do(client, cmd.Context(), it.id) })
		if err != nil {
			return err
		}
		return a.print(it.called + " " + l.done + "\n")
	}
	return cmd
}
