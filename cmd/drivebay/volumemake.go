package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// classFlags say what kind of volume is meant.
type classFlags struct {
	short map[string]*string // by parameter
	more  []string
}

// classFlag gives a command a flag for a parameter of a class.
func (c *classFlags) flag(cmd *cobra.Command, name, parameter, help string) {
	if c.short == nil {
		c.short = map[string]*string{}
	}
	c.short[parameter] = cmd.Flags().String(name, "", help)
}

func newClassFlags(cmd *cobra.Command) *classFlags {
	c := new(classFlags)
	c.flag(cmd, "backing", drivebay.ParameterBacking, "what it is made of: partition, drive, lvm, thin, mirror")
	c.flag(cmd, "class", drivebay.ParameterClass, "the drives that it is made on: any, hdd, ssd, nvme")
	cmd.Flags().StringArrayVar(&c.more, "param", nil, "a parameter of a StorageClass, KEY=VALUE; may be given again")
	return c
}

// parameters are those of a StorageClass; one that is not known, or said twice and
// not alike, is refused.
func (c *classFlags) parameters() (map[string]string, error) {
	out := map[string]string{}
	for _, one := range c.more {
		key, value, ok := strings.Cut(one, "=")
		if !ok || key == "" {
			return nil, usage("--param %q: want KEY=VALUE", one)
		}
		if was, twice := out[key]; twice && was != value {
			return nil, usage("--param: %s is both %q and %q", key, was, value)
		}
		out[key] = value
	}
	for key, value := range c.short {
		if *value == "" {
			continue
		}
		if was, twice := out[key]; twice && was != *value {
			return nil, usage("%s is both %q and %q", key, was, *value)
		}
		out[key] = *value
	}
	if _, err := drivebay.ParseClass(out); err != nil {
		return nil, usageError{err}
	}
	return out, nil
}

func (a *app) volumeCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a volume on a drive that is claimed", Args: cobra.ExactArgs(1),
		Long: "Makes a volume on a drive that is claimed, and prints its id. A second call with the same\nname and wishes prints the same id. `drivebay capacity` tells what room there is.",
		Example: "  drivebay volume create data-1 --size 10GiB\n  drivebay volume create raw-1 --size 1TB --block --class nvme\n" +
			"  drivebay volume create copy-1 --backing thin --from-snapshot monday\n  drivebay volume create safe-1 --passphrase-file key.txt",
	}
	var body api.VolumeBody
	class := newClassFlags(cmd)
	class.flag(cmd, "wipe", drivebay.ParameterWipe, "what becomes of its data when it is deleted: discard, zero, none")
	class.flag(cmd, "encryption", drivebay.ParameterEncryption, "how its data are encrypted: luks2")
	secret := newPassphraseFlag(cmd, "the volume is encrypted with what is in this file")
	size := cmd.Flags().String("size", "", "how large, at least: 10GiB, 960GB; without, 1GiB or as large as what it begins with")
	limit := cmd.Flags().String("limit", "", "how large, at most")
	cmd.Flags().StringVar(&body.FSType, "fs", "", "its filesystem: "+strings.Join(drivebay.FSTypes, ", "))
	cmd.Flags().BoolVar(&body.Block, "block", false, "a block device, no filesystem")
	cmd.Flags().StringVar(&body.Source.Snapshot, "from-snapshot", "", "begin with what this snapshot has")
	cmd.Flags().StringVar(&body.Source.Volume, "from-volume", "", "begin with what this volume has")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		body.Name = args[0]
		if body.FSType != "" && body.Block {
			return usage("--fs and --block exclude each other")
		}
		if body.Source.Snapshot != "" && body.Source.Volume != "" {
			return usage("--from-snapshot and --from-volume exclude each other")
		}
		if body.FSType != "" && !slices.Contains(drivebay.FSTypes, body.FSType) {
			return usage("--fs %q: want %s", body.FSType, strings.Join(drivebay.FSTypes, ", "))
		}
		if body.Size, err = sizeFlag("--size", *size); err != nil {
			return err
		}
		if body.Limit, err = sizeFlag("--limit", *limit); err != nil {
			return err
		}
		if body.Parameters, err = secret.class(class); err != nil {
			return err
		}
		if body.Passphrase, err = secret.read(a.in); err != nil {
			return err
		}
		return a.createVolume(cmd, body)
	}
	return cmd
}

func (a *app) createVolume(cmd *cobra.Command, body api.VolumeBody) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var made drivebay.Volume
	err = a.untilDone(cmd.Context(), client, func() (err error) {
		made, err = client.CreateVolume(cmd.Context(), body)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(fmt.Sprintln(made.ID))
}

// sizeFlag is the size that a flag gives; 0 when it was not given.
func sizeFlag(name, text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	size, err := someSize(text)
	if err != nil {
		return 0, usage("%s: %w", name, err)
	}
	return size, nil
}
