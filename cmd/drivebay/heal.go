package main

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a volumeCommands) healCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "heal VOLUME", Short: "Repair a volume that cannot be used", Args: cobra.ExactArgs(1),
		Long:    "Does the repairs of the table in docs/repairs.md that the volume needs: for example, mounts a\nfilesystem again that was unmounted by accident, and uses a drive again that is back under another\nname. No repair can lose data, and no repair unmounts by force. The exit status is 1 if something\ncould not be repaired; the command lists the findings that remain.",
		Example: "  drivebay heal data-1 --dry-run\n  drivebay heal data-1 --option noatime",
	}
	var body api.HealBody
	cmd.Flags().BoolVar(&body.DryRun, "dry-run", false, "list the repairs that would be done, and do nothing")
	cmd.Flags().BoolVar(&body.Fsck, "fsck", false, "repair the filesystem with its own repair program; it must not be mounted")
	cmd.Flags().StringSliceVar(&body.Options, "option", nil, "mount option that the volume was staged with; drivebay does not store mount options")
	secret, out := newPassphraseFlag(cmd, "file with the passphrase of an encrypted volume"), outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if body.Passphrase, err = secret.read(a.in); err != nil {
			return err
		}
		client, v, err := a.pickVolume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		var report drivebay.HealReport
		err = a.untilDone(cmd.Context(), client, v.ID, func() (err error) {
			report, err = client.HealVolume(cmd.Context(), v.ID, body)
			return err
		})
		if err == nil {
			err = a.printAs(out, report, func(render.Style) string { return render.Healed(&v.Volume, report) })
		}
		if err == nil && (!body.DryRun || len(report.Steps) == 0) {
			err = unhealed(&v.Volume, report)
		}
		return err
	}
	return cmd
}

// endsByItself are the reasons of findings that a repair leaves for a while: the copies are made equal.
var endsByItself = []string{"MirrorOutOfSync", "ReplicationDegraded"}

// unhealed returns an error if something could not be repaired. A finding that only degrades the volume and ends by itself
// after a repair is not an error.
func unhealed(v *drivebay.Volume, r drivebay.HealReport) error {
	for _, s := range r.Steps {
		if s.Failed != "" {
			return fmt.Errorf("%s: %w: %s", render.CalledVolume(v), drivebay.ErrRefused, "not every repair succeeded")
		}
	}
	c := slices.Clone(drivebay.Condition(r.Remaining))
	if len(r.Steps) > 0 {
		c = slices.DeleteFunc(c, func(f drivebay.VolumeFinding) bool {
			return f.Severity <= drivebay.SeverityDegraded && slices.Contains(endsByItself, f.Reason)
		})
	}
	if c.Abnormal() {
		return fmt.Errorf("%s: %w: `drivebay heal` cannot repair %s; `drivebay explain %s` shows what to do", render.CalledVolume(v), drivebay.ErrRefused, c[0].Reason, v.ID)
	}
	return nil
}
