package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// notifyCommand is about the notices that the daemon sends.
func (a *app) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "notify", Short: "Notices: webhook and command",
		Long: "The daemon sends notices to a webhook and to a command, as `notify` in the configuration says;\ndocs/notices.md describes them."}
	cmd.AddCommand(&cobra.Command{
		Use: "test", Short: "Send a trial notice", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long:    "Makes the daemon send a notice of the kind `trial` to every webhook and command that is\nconfigured, and reports whether each has taken it. The exit status is 1 if one has not.",
		Example: "  drivebay notify test",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := a.dial()
			defer client.Close()
			trial, err := client.Trial(cmd.Context())
			if err != nil {
				return err
			}
			failed := 0
			for _, r := range trial.Results {
				took := time.Duration(r.Seconds * float64(time.Second)).Round(time.Millisecond)
				line := fmt.Sprintf("%s: delivered in %s\n", r.Sink, took)
				if r.Error != "" {
					failed++
					line = fmt.Sprintf("%s: not delivered: %s\n", r.Sink, r.Error)
				}
				if err := a.print(line); err != nil {
					return err
				}
			}
			if failed > 0 {
				return fmt.Errorf("the trial notice was not delivered to %d of %d", failed, len(trial.Results))
			}
			return nil
		},
	})
	return cmd
}
