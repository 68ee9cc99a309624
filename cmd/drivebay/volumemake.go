package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// classFlags are the flags that give the parameters of a class.
type classFlags struct {
	short map[string]*string // by parameter
	more  []string
}

// flag adds a flag for a parameter of a class to a command.
func (c *classFlags) flag(cmd *cobra.Command, name, parameter, help string) {
	if c.short == nil {
		c.short = map[string]*string{}
	}
	c.short[parameter] = cmd.Flags().String(name, "", help)
}

func newClassFlags(cmd *cobra.Command) *classFlags {
	c := new(classFlags)
	c.flag(cmd, "backing", drivebay.ParameterBacking, "backing of the volume: partition, drive, lvm, thin, mirror")
	c.flag(cmd, "class", drivebay.ParameterClass, "drives to use: any, hdd, ssd, nvme")
	cmd.Flags().StringArrayVar(&c.more, "param", nil, "parameter of a StorageClass, KEY=VALUE; can be repeated")
	return c
}

// parameters returns the parameters of a StorageClass. It refuses unknown ones, and one
// that is given twice with different values.
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

func (a volumeCommands) volumeCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a volume on a claimed drive", Args: cobra.ExactArgs(1),
		Long: "Creates a volume on a claimed drive and prints its ID. A second call with the same name and\nparameters prints the same ID. `drivebay capacity` shows the available space.",
		Example: "  drivebay volume create data-1 --size 10GiB\n  drivebay volume create raw-1 --size 1TB --block --class nvme\n" +
			"  drivebay volume create copy-1 --backing thin --from-snapshot monday\n  drivebay volume create safe-1 --passphrase-file key.txt",
	}
	var body api.VolumeBody
	class := newClassFlags(cmd)
	class.flag(cmd, "wipe", drivebay.ParameterWipe, "how the data is wiped when the volume is deleted: discard, zero, none")
	class.flag(cmd, "encryption", drivebay.ParameterEncryption, "encryption of the volume: luks2")
	secret := newPassphraseFlag(cmd, "file with the passphrase to encrypt the volume with")
	size := cmd.Flags().String("size", "", "minimum size, for example 10GiB or 960GB (default 1GiB, or the size of the source)")
	limit := cmd.Flags().String("limit", "", "maximum size")
	cmd.Flags().StringVar(&body.FSType, "fs", "", "filesystem: "+strings.Join(drivebay.FSTypes, ", "))
	cmd.Flags().BoolVar(&body.Block, "block", false, "create a block device without a filesystem")
	cmd.Flags().StringVar(&body.Source.Snapshot, "from-snapshot", "", "copy the data of this snapshot")
	cmd.Flags().StringVar(&body.Source.Volume, "from-volume", "", "copy the data of this volume")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		body.Name = args[0]
		if body.FSType != "" && body.Block {
			return usage("--fs and --block cannot be used together")
		}
		if body.Source.Snapshot != "" && body.Source.Volume != "" {
			return usage("--from-snapshot and --from-volume cannot be used together")
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

func (a volumeCommands) createVolume(cmd *cobra.Command, body api.VolumeBody) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var made drivebay.Volume
	err = a.untilDone(cmd.Context(), client, body.Name, func() (err error) {
		made, err = client.CreateVolume(cmd.Context(), body)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(fmt.Sprintln(made.ID))
}

// sizeFlag parses the size that a flag gives; it returns 0 when the flag was not given.
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
