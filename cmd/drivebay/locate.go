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
		Long:              "Switches the light of a bay on or off. BAY is the name or number of the bay, ENCLOSURE/BAY if\nseveral bays have the same name, or the drive in the bay.",
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

// findBay returns the bay that what names: by the name of the bay, by the drive in it,
// or by the number alone where only one bay has it. "7" is "Slot 07". For a drive it
// returns the ID of the drive.
func findBay(s *drivebay.Snapshot, what string) (string, error) {
	if _, ok := s.FindBay(what); ok {
		return what, nil
	}
	if d, ok := s.Find(what); ok {
		if d.Slot.Bay == "" {
			return "", fmt.Errorf("drive %s (%s): %w: the bay of the drive is not known", d.ID, d.Name, drivebay.ErrNotFound)
		}
		return d.ID, nil
	}
	var all, same []string
	for _, b := range s.Bays {
		name := strings.TrimPrefix(b.Enclosure+"/"+b.Bay, "/")
		all = append(all, name)
		if n := bayNumber(b.Bay); n != "" && n == bayNumber(what) {
			same = append(same, name)
		}
	}
	switch {
	case len(same) == 1:
		return same[0], nil
	case len(same) > 1:
		return "", fmt.Errorf("bay %q: %w: %s", what, drivebay.ErrAmbiguous, strings.Join(same, ", "))
	case len(all) == 0:
		return "", fmt.Errorf("bay %q: %w: this machine reports no bays", what, drivebay.ErrNotFound)
	}
	return "", fmt.Errorf("bay %q: %w: known bays: %s", what, drivebay.ErrNotFound, strings.Join(all, ", "))
}

// bayNumber returns the number at the end of a bay's name, without leading zeros.
func bayNumber(name string) string {
	start := strings.LastIndexFunc(name, func(r rune) bool { return r < '0' || r > '9' }) + 1
	if start == len(name) {
		return ""
	}
	if n := strings.TrimLeft(name[start:], "0"); n != "" {
		return n
	}
	return "0"
}
