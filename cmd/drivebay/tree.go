package main

import (
	"fmt"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a driveCommands) treeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tree", Short: "Show the bays, their drives, and the volumes and mounts that depend on them",
		Long: "Shows each bay with its drive, the volumes on the drive with their health, and where they are mounted.\n" +
			"A volume on several drives is below each of them, with the other ones. What other programs have on a\n" +
			"drive is shown too: mounts, RAID, LVM, swap.",
		Example: "  drivebay tree\n  drivebay tree --root ./recording",
	}
	out := outputFlag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		src, err := a.source()
		if err != nil {
			return err
		}
		s, err := src.Drives(cmd.Context())
		if err != nil {
			return err
		}
		volumes, err := volumesOn(cmd.Context(), src)
		if err != nil {
			fmt.Fprintln(a.err, "note: the volumes on the drives are not known: "+render.Clean(err.Error()))
		}
		tree := render.TreeOf(s, volumes)
		err = a.printAs(out, tree, func(st render.Style) string { return render.Tree(tree, st) })
		a.notes(s)
		return err
	}
	return cmd
}
