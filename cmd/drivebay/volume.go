package main

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

func (a *app) volumeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "volume", Short: "Show, make or change one volume"}
	cmd.AddCommand(
		a.volumeShowCommand(), a.volumeCreateCommand(), a.volumeDeleteCommand(), a.volumeExpandCommand(),
		a.volumeSnapshotCommand(), a.volumeSnapshotsCommand(), a.volumeSnapshotDeleteCommand(), a.volumeSnapshotForgetCommand(),
		a.onVolume("retry VOLUME", "Try again now what failed", "tried again", (*api.Client).RetryVolume),
		a.onVolume("clear VOLUME", "Let a failure be", "cleared", (*api.Client).ClearVolume),
		a.volumeReleaseCommand(), a.volumeAcceptLossCommand(), a.volumeForgetCommand(), a.volumeAdoptCommand(),
	)
	return cmd
}

func (a *app) scrubCommand() *cobra.Command {
	cmd := a.onVolume("scrub VOLUME", "Check the filesystem of a volume now, read-only",
		"is being checked; `drivebay volume show` tells the verdict", (*api.Client).ScrubVolume)
	cmd.Long = "Checks the filesystem of a volume now. Nothing is repaired and nothing is written. One check\nof a mounted filesystem can be wrong: several in a row have to agree before it counts."
	return cmd
}

// onVolume is a command that needs no more than the volume, and says so when done.
func (a *app) onVolume(use, short, done string, do func(*api.Client, context.Context, string) error) *cobra.Command {
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
			return a.print(fmt.Sprintf("%s %s\n", calledVolume(&v.Volume), done))
		},
	}
}

func calledVolume(v *drivebay.Volume) string {
	return fmt.Sprintf("volume %s (%s)", v.ID, render.Clean(v.Name))
}

func (a *app) volumeShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show VOLUME", Short: "Show everything about a volume", Args: cobra.ExactArgs(1)}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		v, err := a.volume(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.printAs(out, v, func(s render.Style) string { return render.Volume(&v.VolumeView, v.Snapshots, s) })
	}
	return cmd
}

func (a *app) volumeDeleteCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "delete VOLUME", short: "Wipe a volume as its class says, and remove it",
		long:  "Wipes a volume as its class says, and removes it. What is on it is gone for good. Without\n--yes nothing is done, and what would be lost is told. The whole id or name is wanted. A\nvolume that is mounted is refused.",
		sure:  "yes, what is on it may be lost",
		about: a.volumeAtStake, refusal: "%s, and what is on it, would be lost for good: to delete it add --yes",
		do: (*api.Client).DeleteVolume, done: "deleted",
	})
}

func (a *app) volumeForgetCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "forget VOLUME", short: "Drop the record of a volume whose drives are gone",
		long:  "Drops the record of a volume whose drives are gone for good, and those of its snapshots. A\nvolume that cannot be deleted any more is got rid of so. Nothing is wiped: if a drive comes\nback, what is on it is found again. It is refused while one of its drives is ONLINE, and\nwhile it is mounted. Without --yes nothing is done. The whole id or name is wanted.",
		sure:  "yes, its drives are gone for good",
		about: a.volumeAtStake, refusal: "%s would be forgotten, and not wiped: to forget it add --yes",
		do: (*api.Client).ForgetVolume, done: "forgotten",
	})
}

func (a *app) volumeAdoptCommand() *cobra.Command {
	return &cobra.Command{
		Use: "adopt ID", Short: "Take in a volume that was found on a drive that is not claimed", Args: cobra.ExactArgs(1),
		Long: "Records a volume that was found on a drive that is not claimed, as `drivebay volumes` shows it.\nIt can be staged and published from then on. Nothing is written to the drive: to grow, move or\nremove the volume, claim the drive with `drivebay claim DRIVE`, which takes in all of its volumes.",
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

func (a *app) volumeReleaseCommand() *cobra.Command {
	cmd := a.onVolume("release VOLUME", "Let go of a volume whose drive has to leave", "released: its drive does not wait for it any more", (*api.Client).ReleaseVolume)
	cmd.Long = "Says that nobody needs what is on the leaving drive of a volume any more: the drive goes without\nit. Nothing is wiped. It is refused while the volume is mounted, and while none of its drives\nhas to leave; if the drive stays after all, so does the volume."
	return cmd
}

func (a *app) volumeAcceptLossCommand() *cobra.Command {
	return a.lossy(lossy{
		use: "accept-loss VOLUME", short: "Go on without data of a volume that cannot be had",
		long:  "A mirror of which the leg with the newest data is lost goes on with the leg that is there; what\nwas written since is lost. The lost drive has to be out of the machine.\n\nLets a volume go on to another drive that some of cannot be read any more: what that is,\n`drivebay volume show` names by offset and length. It reads as zeros from then on, and the\nvolume says so until `drivebay volume clear`. `drivebay volume retry` reads again instead.\nWithout --yes nothing is done. The whole id or name is wanted.",
		sure:  "yes, these data may be lost",
		about: a.lossAtStake, refusal: "what cannot be read of it, or was written to the lost leg of a mirror, would be lost for good: %s: to go on without it add --yes",
		do: (*api.Client).AcceptLoss, done: "goes on without these data",
	})
}

// lossAtStake names a volume with what cannot be read of it.
func (a *app) lossAtStake(ctx context.Context, what string) (*api.Client, atStake, error) {
	client, v, err := a.pickVolume(ctx, what)
	if err != nil {
		return nil, atStake{}, err
	}
	told := lossOf(v)
	if v.UsageFailure != nil {
		told += "; " + render.Clean(v.UsageFailure.Cause)
	}
	return client, atStake{calledVolume(&v.Volume), told}, nil
}

func (a *app) volumeAtStake(ctx context.Context, what string) (*api.Client, atStake, error) {
	client, v, err := a.pickVolume(ctx, what)
	if err != nil {
		return nil, atStake{}, err
	}
	return client, atStake{calledVolume(&v.Volume), lossOf(v)}, nil
}

// lossOf names a volume so that nobody takes it for another.
func lossOf(v *drivebay.VolumeView) string {
	text := fmt.Sprintf("%s of %s, made %s", calledVolume(&v.Volume), render.Binary(v.Size), v.Created.UTC().Format("2006-01-02 15:04:05Z"))
	for _, p := range v.Publications {
		text += ", mounted at " + render.Clean(p.Path)
	}
	return text
}

func (a *app) volumeExpandCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "expand VOLUME SIZE", Short: "Grow a volume to a size", Args: cobra.ExactArgs(2),
		Long:    "Grows a volume, and its filesystem where it is mounted; one that is not grows when it is\nmounted the next time. An encrypted one that is in use grows with its passphrase, or when\nit is staged the next time. A partition without room behind it has to move, or the one behind\nit: ask again until it has grown. Nothing shrinks.",
		Example: "  drivebay volume expand data-1 20GiB",
	}
	secret := newPassphraseFlag(cmd, "the passphrase of an encrypted volume that is in use is in this file")
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
		var grown drivebay.Volume
		err = a.untilDone(cmd.Context(), client, func() (err error) {
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

// grew says what has become of a volume that was grown.
func grew(v *drivebay.Volume) string {
	text := fmt.Sprintf("%s has %s", calledVolume(v), render.Binary(v.Size))
	switch {
	case v.CSIStatus != drivebay.CSIResized:
	case v.LUKSUUID != "":
		text += "; what is in it grows when it is staged the next time, or now with --" + passphraseFile
	default:
		text += "; its filesystem grows when it is mounted the next time"
	}
	return text
}

// someSize is a size that is not nothing.
func someSize(text string) (uint64, error) {
	size, err := drivebay.ParseSize(text)
	if err == nil && size == 0 {
		err = fmt.Errorf("%w: %q is nothing", drivebay.ErrInvalid, text)
	}
	return size, err
}
