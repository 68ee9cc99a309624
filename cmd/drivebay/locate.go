package main

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
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
			bay, err := findBay(s, args[0])
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

// findBay returns the bay that what names: by its name or number, or by the drive in it. For a
// drive it returns the ID of the drive.
func findBay(s *drivebay.Snapshot, what string) (string, error) {
	var same, all []string
	for _, b := range s.FindBays(what) {
		same = append(same, bayName(b))
	}
	switch d, err := find(s, what, false); {
	case len(same) == 1:
		return same[0], nil
	case len(same) > 1:
		return "", fmt.Errorf("bay %q: %w: %s", what, drivebay.ErrAmbiguous, strings.Join(same, ", "))
	case err == nil && d.Slot.Bay == "":
		return "", fmt.Errorf("drive %s (%s): %w: the bay of the drive is not known", d.ID, d.Name, drivebay.ErrNotFound)
	case err == nil:
		return d.ID, nil
	}
	for i := range s.Bays {
		all = append(all, bayName(&s.Bays[i]))
	}
	if len(all) == 0 {
		return "", fmt.Errorf("bay %q: %w: this machine reports no bays", what, drivebay.ErrNotFound)
	}
	return "", fmt.Errorf("bay %q: %w: known bays: %s", what, drivebay.ErrNotFound, strings.Join(all, ", "))
}

// bayName returns the name of a bay that no other bay has.
func bayName(b *drivebay.Bay) string { return strings.TrimPrefix(b.Enclosure+"/"+b.Bay, "/") }
