package main

import (
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a driveCommands) claimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "claim [DRIVE]...", Short: "Allow volumes on drives",
		Long: "Allows drivebay to create volumes on drives. Nothing is written to the drives now. The command\n" +
			"refuses a drive that has content, that is in use, that the machine runs from or that cannot\n" +
			"be distinguished from another drive, and prints the reason. Without DRIVE it lists every\n" +
			"drive with its claim or the reasons against a claim.",
		Example: "  drivebay claim\n  drivebay claim sdc nvme0n1",
	}
	cmd.Args = cobra.ArbitraryArgs
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return a.listClaims(cmd, out)
		}
		return a.setClaims(cmd, args, true)
	}
	return cmd
}

func (a driveCommands) unclaimCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unclaim DRIVE...", Short: "Allow no new volumes on drives", Args: cobra.MinimumNArgs(1),
		Long: "Removes the claim that `drivebay claim` made. A drive that the configuration claims stays\nclaimed as long as the configuration claims it.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.setClaims(cmd, args, false) },
	}
}

// claimRow is one drive in the JSON and YAML output.
type claimRow struct {
	Drive   string          `json:"drive"`
	Name    string          `json:"name"`
	Claim   *drivebay.Claim `json:"claim,omitempty"`
	Against []string        `json:"against,omitempty"` // why nothing may be written to it
}

func (a driveCommands) listClaims(cmd *cobra.Command, out *output) error {
	src, err := a.source()
	if err != nil {
		return err
	}
	s, err := src.Drives(cmd.Context())
	if err != nil {
		return err
	}
	drives := render.Order(s.Drives)
	rows := []claimRow{}
	for i := range drives {
		d := &drives[i]
		rows = append(rows, claimRow{d.ID, d.Name, d.Claim, d.Refusals()})
	}
	return a.printAs(out, rows, func(st render.Style) string { return render.Claims(drives, st) })
}

// setClaims claims or unclaims drives. An error of one drive does not stop the others.
func (a driveCommands) setClaims(cmd *cobra.Command, what []string, on bool) error {
	done := map[bool]string{true: "claimed", false: "unclaimed"}[on]
	var failed error
	for _, w := range what {
		src, d, err := a.pick(cmd.Context(), w)
		if err == nil {
			err = src.Claim(cmd.Context(), d.ID, on)
		}
		if err == nil {
			err = a.print(fmt.Sprintf("drive %s (%s) %s\n", d.ID, render.Clean(d.Name), done))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
