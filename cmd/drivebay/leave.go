package main

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

// leaveCommands lead a drive out of the machine.
func (a *app) leaveCommands() []*cobra.Command {
	release := a.lead(drivebay.LeaveRelease, "release ID", "Say that a drive has to leave",
		"has to leave; `drivebay drive show` says what it waits for")
	release.Long = "Says that a drive has to leave. Nothing new comes to it, and what is on it keeps serving.\nOnce nothing depends on it any more it is RELEASED, and `drivebay approve` takes it out."
	approve := a.lead(drivebay.LeaveApprove, "approve ID", "Take out a drive that nothing depends on",
		"may be pulled; its bay is lit where it has a light")
	approve.Long = "Has the kernel let go of a drive that is RELEASED, and lights its bay. What the drive is called\nis said again before: without --yes nothing is done."
	yes := approve.Flags().Bool("yes", false, "yes, this drive")
	run := approve.RunE
	approve.RunE = func(cmd *cobra.Command, args []string) error {
		if *yes {
			return run(cmd, args)
		}
		_, d, err := a.pick(cmd.Context(), args[0])
		if err == nil {
			err = fmt.Errorf("%w: drive %s (%s), %s, serial %s, in bay %s would be taken out: to do so add --yes", drivebay.ErrRefused, d.ID, render.Clean(d.Name), render.Clean(d.Model), render.Clean(d.Serial), render.Clean(d.Slot.Bay))
		}
		return err
	}
	cancel := a.lead(drivebay.LeaveCancel, "cancel ID", "Let a drive stay that was to leave", "stays")
	accept := a.lead(drivebay.LeaveAccept, "accept ID", "Use a drive again that was taken out and is back", "is in use again")
	forget := a.lead(drivebay.LeaveForget, "forget ID", "Remove the record of a drive that is gone for good", "is forgotten")
	forget.Long = "Removes the record of a drive that is OFFLINE: it is listed no more, and its alerts end. It is\nrefused while the record of a volume or snapshot names the drive: `drivebay volume forget` comes\nfirst. A drive that comes back is a new one."
	return []*cobra.Command{a.replaceCommand(), release, approve, cancel, accept, a.forceCommand(), forget}
}

// lead is a command that says one thing of a drive on its way out.
func (a *app) lead(do drivebay.LeaveVerb, use, short, done string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: oneDrive}
	why := cmd.Flags().String("why", "", "the reason, kept with the drive and told in its events")
	cmd.RunE = a.change(func(src source, d *drivebay.Drive, cmd *cobra.Command, _ []string) (string, error) {
		return done, src.Lead(cmd.Context(), d.ID, do, *why)
	})
	return cmd
}
