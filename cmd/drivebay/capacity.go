package main

import (
	"github.com/drivebay/drivebay/cmd/drivebay/internal/capacity"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a volumeCommands) capacityCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "capacity", Short: "Show the space that is available for volumes",
		Long:    "Shows the space for volumes on the claimed drives. LARGEST is the size of the largest volume that\ncan be created: one extent more does not fit. Without --backing there is one line per backing.\nAll lines describe the same space: a volume of one backing reduces the space of the others.",
		Example: "  drivebay capacity\n  drivebay capacity --backing thin --class ssd",
	}
	out := outputFlag(cmd, "table", "json", "yaml")
	class := newClassFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		parameters, err := class.parameters()
		if err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		rows, err := capacity.Of(cmd.Context(), client, parameters)
		if err != nil {
			return err
		}
		return a.printAs(out, rows, func(s render.Style) string { return capacity.Draw(rows, s) })
	}
	return cmd
}
