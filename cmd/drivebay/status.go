package main

import (
	"errors"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show whether the daemon is ready, and what it waits for",
		Long: "Shows whether the daemon is ready, the reasons if it is not, and which drives it has not read yet.\nThe command reads no drive. The exit status is 1 while the daemon is not ready.",
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		st, err := a.dial().Status(cmd.Context())
		if err != nil {
			return err
		}
		if err := a.printAs(out, st, func(render.Style) string { return statusText(st) }); err != nil {
			return err
		}
		if !st.Ready() {
			return errNotReady
		}
		return nil
	}
	return cmd
}

var errNotReady = errors.New("the daemon is not ready")

// statusText returns one line for the daemon, and one for each thing that is wrong or
// that the daemon waits for.
func statusText(st api.Status) string {
	var b strings.Builder
	b.WriteString(st.Status + "\n")
	for _, r := range st.Reasons {
		b.WriteString("  reason    " + render.Clean(r) + "\n")
	}
	for _, u := range st.Unread {
		b.WriteString("  waits for " + render.Clean(u) + "\n")
	}
	if len(st.Unread) > 0 {
		b.WriteString("  until then, calls that depend on volumes on these drives fail with UNAVAILABLE; if a drive does not\n  recover, pull it, or run `drivebay cordon DRIVE` if it is not claimed and has no volume\n")
	}
	for _, id := range st.Unwritten {
		b.WriteString("  in memory only: the newest record of volume " + id + "\n")
	}
	for _, id := range st.Newer {
		b.WriteString("  newer     volume " + id + " on its drive than in the record store: the store was restored from a backup or rolled back; the state on the drive is used\n")
	}
	return b.String()
}
