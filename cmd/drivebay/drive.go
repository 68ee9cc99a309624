package main

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// oneDrive is the argument of commands about one drive.
var oneDrive = cobra.ExactArgs(1)

func (a driveCommands) driveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "drive", Short: "Show or change one drive"}
	show := a.showCommand("show DRIVE", "Show the details of a drive", render.Drive)
	acknowledge := &cobra.Command{
		Use: "acknowledge DRIVE [CODE]", Short: "Accept a drive's current findings",
		Long: "Accepts a finding at its current level: the finding counts again when the level rises. Only\nSUSPECT findings, and findings whose cause is gone, can be accepted. Without CODE the command\naccepts all of them.",
		Args: cobra.RangeArgs(1, 2),
	}
	acknowledge.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, rest []string) (string, error) {
		code := ""
		if len(rest) > 0 {
			code = rest[0]
		}
		return "acknowledged", src.Acknowledge(cmd.Context(), d.ID, code)
	})
	cmd.AddCommand(a.cordonCommands()...)
	cmd.AddCommand(show, acknowledge, a.lead(drivebay.LeaveRetry, "retry DRIVE", "Retry the failed step of the removal of a drive", "retries the failed step"))
	return cmd
}

// cordonCommands returns cordon and uncordon. They are often used while a drive is
// replaced, so they are top-level commands as well as subcommands of drive.
func (a driveCommands) cordonCommands() []*cobra.Command {
	cordon := &cobra.Command{Use: "cordon DRIVE", Short: "Place no new volumes on a drive", Args: oneDrive}
	cordon.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		return "cordoned", src.Cordon(cmd.Context(), d.ID, true)
	})
	uncordon := &cobra.Command{Use: "uncordon DRIVE", Short: "Allow new volumes on a cordoned drive", Args: oneDrive}
	uncordon.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		return "uncordoned", src.Cordon(cmd.Context(), d.ID, false)
	})
	return []*cobra.Command{cordon, uncordon}
}

// change returns the RunE of a command that changes one drive and prints the change.
func (a driveCommands) change(do driveChange) func(*cobra.Command, []string) error {
	return a.changeAs(false, do)
}

// driveChange changes a drive, and returns what it did.
type driveChange func(source, *drivebay.Drive, *cobra.Command, []string) (string, error)

// changeAs does what change does; with whole, the drive must not be given by the beginning of a name.
func (a driveCommands) changeAs(whole bool, do driveChange) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		src, d, err := a.pickDrive(cmd.Context(), args[0], whole)
		if err != nil {
			return err
		}
		done, err := do(src, d, cmd, args[1:])
		if err != nil {
			return err
		}
		return a.print(fmt.Sprintf("drive %s (%s) %s\n", d.ID, render.Clean(d.Name), done))
	}
}

// showCommand returns a command that draws one drive.
func (a driveCommands) showCommand(use, short string, draw func(*drivebay.Drive, render.Style) string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: oneDrive}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, d, err := a.drive(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.printAs(out, d, func(s render.Style) string { return draw(d, s) })
	}
	return cmd
}

func (a driveCommands) smartCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "smart DRIVE", Short: "Show the health pages of a drive", Args: oneDrive}
	raw := cmd.Flags().Bool("raw", false, "read the drive now and show its pages unchanged")
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, d, err := a.drive(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !*raw {
			return a.printAs(out, d.Evidence, func(s render.Style) string { return render.Smart(d, s) })
		}
		pages, err := src.Pages(cmd.Context(), d.ID)
		if err != nil {
			return err
		}
		return a.printAs(out, pages, func(s render.Style) string { return render.Pages(pages, s) })
	}
	return cmd
}
