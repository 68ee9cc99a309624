package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a volumeCommands) volumeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "volume", Short: "Show, create or change one volume"}
	cmd.AddCommand(
		a.volumeShowCommand(), a.volumeCreateCommand(), a.volumeDeleteCommand(), a.volumeExpandCommand(),
		a.volumeSnapshotCommand(), a.volumeSnapshotsCommand(), a.volumeSnapshotDeleteCommand(), a.volumeSnapshotForgetCommand(),
		a.withDryRun(a.onVolume("retry VOLUME", "Retry the failed operation of a volume now", "is retried", (*api.Client).RetryVolume), plan.Retry),
		a.onVolume("clear VOLUME", "Clear the failure of a volume", "cleared", (*api.Client).ClearVolume),
		a.volumeMoveFirstCommand(), a.volumeReleaseCommand(), a.volumeAcceptLossCommand(), a.volumeForgetCommand(), a.volumeAdoptCommand(),
	)
	return cmd
}

// onVolume returns a command that takes only a volume, calls do and prints done. In done,
// {volume} is the ID of the volume.
func (a volumeCommands) onVolume(use, short, done string, do func(*api.Client, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, v, err := a.pickVolume(cmd.Context(), args[0])
			if err == nil {
				err = do(client, cmd.Context(), v.ID)
			}
			if err != nil {
				return err
			}
			return a.print(fmt.Sprintf("%s %s\n", render.CalledVolume(&v.Volume), strings.ReplaceAll(done, "{volume}", v.ID)))
		},
	}
}

func (a volumeCommands) volumeShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show VOLUME", Short: "Show the details of a volume", Args: cobra.ExactArgs(1)}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := a.volume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.printAs(out, v, func(s render.Style) string { return render.Volume(&v.VolumeView, v.Snapshots, s) })
	}
	return cmd
}

func (a volumeCommands) volumeDeleteCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "delete VOLUME", short: "Wipe a volume as its class specifies, and delete it",
		long:  "Wipes a volume as its class specifies, and deletes it. The data on it is lost permanently. Without\n--yes the command does nothing and prints what would be lost. The full ID or name is required. The\ncommand refuses a volume that is mounted.",
		sure:  "confirm the loss of the data on the volume",
		about: a.volumeAtStake, refusal: "%s, and the data on it, would be lost permanently; to delete it, add --yes",
		do: (*api.Client).DeleteVolume, done: "deleted", plan: plan.Delete,
	})
}

func (a volumeCommands) volumeForgetCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "forget VOLUME", short: "Delete the record of a volume whose drives are gone",
		long:  "Deletes the record of a volume whose drives are gone permanently, and the records of its snapshots.\nUse it for a volume that can no longer be deleted. Nothing is wiped: if a drive comes back, drivebay\nfinds its volumes again. The command refuses while a drive that may have the volume is ONLINE, and\nwhile the volume is mounted. Without --yes it does nothing. The full ID or name is required.",
		sure:  "confirm that its drives are gone permanently",
		about: a.volumeAtStake, refusal: "%s would be forgotten and not wiped; to forget it, add --yes",
		do: (*api.Client).ForgetVolume, done: "forgotten", plan: plan.Forget,
	})
}

func (a volumeCommands) volumeAdoptCommand() *cobra.Command {
	return &cobra.Command{
		Use: "adopt ID", Short: "Adopt a volume on a drive that is not claimed, or one that came back after its deletion", Args: cobra.ExactArgs(1),
		Long: "Records a volume that was found on a drive that is not claimed; `drivebay volumes` lists it. The\nvolume can then be staged and published. Nothing is written to the drive: to expand, move or delete\nthe volume, claim the drive with `drivebay claim DRIVE`, which adopts all of its volumes.\n\nA volume whose ID was deleted while its drive was absent is adopted as well, if no volume has its\nname now.",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err == nil {
				err = client.AdoptVolume(cmd.Context(), args[0])
			}
			if err != nil {
				return err
			}
			return a.print(fmt.Sprintf("volume %s adopted\n", render.Clean(args[0])))
		},
	}
}

func (a volumeCommands) volumeMoveFirstCommand() *cobra.Command {
	var off bool
	cmd := a.onVolume("move-before-use VOLUME", "Move a volume before it is mounted again", "set", func(c *api.Client, ctx context.Context, id string) error { return c.MoveBeforeUse(ctx, id, !off) })
	cmd.Long = "For a volume on a leaving drive that cannot move while it is in use: once its pod has ended, the volume\nis moved to another drive, and only then mounted again. Until then a new pod waits. If the move fails,\nor the drive stays, the volume can be mounted. The command refuses while none of its drives is leaving."
	cmd.Flags().BoolVar(&off, "off", false, "let it be mounted again at once")
	return cmd
}

func (a volumeCommands) volumeReleaseCommand() *cobra.Command {
	cmd := a.onVolume("release VOLUME", "Release a volume whose drive is leaving", "released: its drive no longer waits for it", (*api.Client).ReleaseVolume)
	cmd.Long = "Confirms that the data of a volume on a leaving drive is no longer needed: the drive is removed and\nthe volume is not moved. Nothing is wiped. The command refuses while the volume is mounted, and\nwhile none of its drives is leaving. If the drive stays after all, the volume stays too."
	return a.withDryRun(cmd, plan.ReleaseVolume)
}

func (a volumeCommands) volumeAcceptLossCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "accept-loss VOLUME", short: "Accept the loss of data of a volume, and continue without it",
		long:  "A mirror whose leg with the newest data is lost continues with the leg that is left; data written\nsince then is lost. The lost drive must be out of the machine.\n\nA volume that is moved to another drive, and of which some data cannot be read, continues without\nthat data: `drivebay volume show VOLUME` lists it by offset and length. It reads as zeros from then\non, and the volume reports the loss until `drivebay volume clear VOLUME`. To read the data again\ninstead, run `drivebay volume retry VOLUME`.\n\nWithout --yes the command does nothing. The full ID or name is required.",
		sure:  "confirm the loss of this data",
		about: a.lossAtStake, refusal: "data that cannot be read, or that was written to the lost leg of a mirror, would be lost permanently: %s; to continue without it, add --yes",
		do: (*api.Client).AcceptLoss, done: "continues without this data", plan: plan.AcceptLoss,
	})
}

// lossAtStake describes a volume and adds the cause of its usage failure.
func (a volumeCommands) lossAtStake(ctx context.Context, what string) (*api.Client, atStake, error) {
	client, v, err := a.pickVolumeAs(ctx, what, true)
	if err != nil {
		return nil, atStake{}, err
	}
	told := lossOf(v)
	if v.UsageFailure != nil {
		told += "; " + render.Clean(v.UsageFailure.Cause)
	}
	return client, atStake{v.ID, render.CalledVolume(&v.Volume), told}, nil
}

func (a volumeCommands) volumeAtStake(ctx context.Context, what string) (*api.Client, atStake, error) {
	client, v, err := a.pickVolumeAs(ctx, what, true)
	if err != nil {
		return nil, atStake{}, err
	}
	return client, atStake{v.ID, render.CalledVolume(&v.Volume), lossOf(v)}, nil
}

// lossOf describes a volume, so that an operator cannot mistake it for another.
func lossOf(v *drivebay.VolumeView) string {
	text := fmt.Sprintf("%s of %s, created %s", render.CalledVolume(&v.Volume), render.Binary(v.Size), v.Created.UTC().Format("2006-01-02 15:04:05Z"))
	for _, p := range v.Publications {
		text += ", mounted at " + render.Clean(p.Path)
	}
	return text
}

func (a volumeCommands) volumeExpandCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "expand VOLUME SIZE", Short: "Expand a volume to a size", Args: cobra.ExactArgs(2),
		Long:    "Expands a volume, and its filesystem if it is mounted; otherwise the filesystem grows when it is\nmounted the next time. An encrypted volume that is in use needs its passphrase, or grows when it is\nstaged the next time. If there is no room behind a partition, the partition or the one behind it has\nto move: repeat the command until the volume has grown. A volume never shrinks.",
		Example: "  drivebay volume expand data-1 20GiB",
	}
	secret, dry := newPassphraseFlag(cmd, "file with the passphrase of an encrypted volume that is in use"), dryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		size, err := someSize(args[1])
		if err != nil {
			return usage("SIZE: %w", err)
		}
		key, err := secret.read(a.in)
		if err != nil {
			return err
		}
		client, v, err := a.pickVolume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *dry {
			return a.dryRunVolume(cmd.Context(), render.CalledVolume(&v.Volume), v.ID, plan.Expand(size))
		}
		var grown drivebay.Volume
		err = a.untilDone(cmd.Context(), client, v.ID, func() (err error) {
			grown, err = client.ExpandVolume(cmd.Context(), v.ID, size, key)
			return err
		})
		if err != nil {
			return err
		}
		return a.print(grew(&grown) + "\n")
	}
	return cmd
}

// grew describes a volume that was expanded, and what of it still has to grow.
func grew(v *drivebay.Volume) string {
	text := fmt.Sprintf("%s has %s", render.CalledVolume(v), render.Binary(v.Size))
	switch {
	case v.CSIStatus != drivebay.CSIResized:
	case v.Encrypted():
		text += "; its decrypted device grows when it is staged the next time, or now with --" + passphraseFile
	default:
		text += "; its filesystem grows when it is mounted the next time"
	}
	return text
}

// someSize parses a size and refuses 0.
func someSize(text string) (uint64, error) {
	size, err := drivebay.ParseSize(text)
	if err == nil && size == 0 {
		err = fmt.Errorf("%w: %q: the size must be greater than 0", drivebay.ErrInvalid, text)
	}
	return size, err
}
