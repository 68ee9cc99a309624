package main

import (
	"fmt"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/spf13/cobra"
)

func (a *app) locateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "locate BAY on|off", Short: "Switch the light of a bay", Args: cobra.ExactArgs(2),
		Long:              "Switches the light beside a bay. BAY is its name, ENCLOSURE/BAY where several have that\nname, or a drive in it.",
		Example:           "  drivebay locate 'Slot 7' on\n  drivebay locate sdc off",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return usage("%q: want on or off", args[1])
			}
			src, err := a.source()
			if err != nil {
				return err
			}
			if err := src.Locate(cmd.Context(), args[0], args[1] == "on"); err != nil {
				return err
			}
			return a.print(fmt.Sprintf("the light of %s is %s\n", render.Clean(args[0]), args[1]))
		},
	}
}
