package main

import (
	"fmt"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a driveCommands) locateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "locate BAY on|off", Short: "Switch the light of a bay on or off", Args: cobra.ExactArgs(2),
		Long:    "Switches the light of a bay on or off. BAY is the name or number of the bay, ENCLOSURE/BAY if\nseveral bays have the same name, or the drive in the bay.",
		Example: "  drivebay locate 'Slot 7' on\n  drivebay locate sdc off",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return usage("%q: want on or off", args[1])
			}
			src, err := a.source()
			if err != nil {
				return err
			}
			s, err := src.Drives(cmd.Context())
			if err != nil {
				return err
			}
			bay, err := named.Bay(s, args[0])
			if err != nil {
				return err
			}
			if err := src.Locate(cmd.Context(), bay, args[1] == "on"); err != nil {
				return err
			}
			return a.print(fmt.Sprintf("the light of bay %s is %s\n", render.Clean(bay), args[1]))
		},
	}
}
