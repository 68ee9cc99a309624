package main

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// leaveCommands returns the commands that take a drive out of the machine.
func (a driveCommands) leaveCommands() []*cobra.Command {
	release := a.lead(drivebay.LeaveRelease, "release DRIVE", "Request the removal of a drive",
		"is being released; `drivebay drive show {drive}` shows what it waits for")
	release.Long = "Requests the removal of a drive. The drive gets no new volumes, and the volumes on it stay in use.\nWhen nothing depends on the drive, its usage is RELEASED and `drivebay approve DRIVE --yes` removes it."
	approve := a.lead(drivebay.LeaveApprove, "approve DRIVE", "Remove a drive that nothing depends on",
		"can be pulled; the light of its bay, if it has one, is on")
	approve.Long = "Removes a drive that is RELEASED from the kernel and switches on the light of its bay. Without --yes\nthe command does nothing and prints the identity of the drive."
	yes := approve.Flags().Bool("yes", false, "confirm the removal of this drive")
	run := approve.RunE
	approve.RunE = func(cmd *cobra.Command, args []string) error {
		if dry, err := cmd.Flags().GetBool("dry-run"); err != nil {
			return err
		} else if *yes || dry {
			return run(cmd, args)
		}
		_, d, err := a.pickDrive(cmd.Context(), args[0], true)
		if err == nil {
			err = fmt.Errorf("%w: drive %s (%s), %s, serial %s, in bay %s, would be removed; to confirm, add --yes", drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(d.Model), render.Clean(d.Serial), render.Clean(d.Slot.Bay))
		}
		return err
	}
	cancel := a.lead(drivebay.LeaveCancel, "cancel DRIVE", "Cancel the removal of a drive", "stays in the machine")
	accept := a.lead(drivebay.LeaveAccept, "accept DRIVE", "Use a removed drive that is back again", "is in use again")
	forget := a.lead(drivebay.LeaveForget, "forget DRIVE", "Delete the record of a drive that is gone permanently", "is forgotten")
	forget.Long = "Deletes the record of a drive that is OFFLINE: the drive is no longer listed, and its alerts end. The\ncommand refuses while the record of a volume or snapshot names the drive: run\n`drivebay volume forget VOLUME` first. A drive that comes back is a new drive."
	return []*cobra.Command{a.replaceCommand(), release, approve, cancel, accept, a.forceCommand(), forget}
}

// lead returns a command that applies one verb to a drive. In done, {drive} is the ID of the drive.
func (a driveCommands) lead(do drivebay.LeaveVerb, use, short, done string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: oneDrive}
	why := cmd.Flags().String("why", "", "reason; stored with the drive and shown in its events")
	dry := dryRunFlag(cmd)
	whole := do == drivebay.LeaveApprove || do == drivebay.LeaveForget // these cannot be undone
	cmd.RunE = a.orDryRun(dry, whole, do, a.changeAs(whole, func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		return strings.ReplaceAll(done, "{drive}", d.ID), src.Operate(cmd.Context(), d.ID, do, *why)
	}))
	return cmd
}

// orDryRun returns the RunE of a command that applies a verb to a drive, or with --dry-run prints
// what the verb would do.
func (a driveCommands) orDryRun(dry *bool, whole bool, do drivebay.LeaveVerb, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if !*dry {
			return run(cmd, args)
		}
		_, d, err := a.pickDrive(cmd.Context(), args[0], whole)
		if err != nil {
			return err
		}
		return a.dryRun(cmd.Context(), d, do)
	}
}
