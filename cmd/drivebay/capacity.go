package main

import (
	"context"
	"errors"
	"maps"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// capacityRow is the capacity for volumes of one backing.
type capacityRow struct {
	Backing drivebay.Backing `json:"backing"`
	*api.Capacity
	Against string `json:"against,omitempty"` // why no volume can be made
}

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
		rows, err := capacities(cmd.Context(), client, parameters)
		if err != nil {
			return err
		}
		return a.printAs(out, rows, func(s render.Style) string { return drawCapacity(rows, s) })
	}
	return cmd
}

// capacities returns the capacity for the backing that is named, or for each.
func capacities(ctx context.Context, client *api.Client, parameters map[string]string) ([]capacityRow, error) {
	all := []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror}
	if one, ok := parameters[drivebay.ParameterBacking]; ok {
		all = []drivebay.Backing{drivebay.Backing(one)}
	}
	var rows []capacityRow
	for _, b := range all {
		asked := maps.Clone(parameters)
		asked[drivebay.ParameterBacking] = string(b)
		c, err := client.Capacity(ctx, asked)
		switch {
		case err == nil:
			rows = append(rows, capacityRow{Backing: b, Capacity: &c})
		case errors.Is(err, drivebay.ErrNoSupport) && len(all) > 1 && b != drivebay.BackingPartition: // partitions work wherever volumes do
			rows = append(rows, capacityRow{Backing: b, Against: err.Error()})
		default:
			return nil, err
		}
	}
	return rows, nil
}

func drawCapacity(rows []capacityRow, s render.Style) string {
	var lines [][]string
	for _, r := range rows {
		line := []string{string(r.Backing), "-", "-", "-", "-", render.Clean(r.Against)}
		if r.Capacity != nil {
			snapshots := map[bool]string{true: "yes", false: "no"}[r.Snapshots]
			line = []string{string(r.Backing), render.Binary(r.Available), render.Binary(r.Largest), render.Binary(r.Smallest), snapshots, ""}
		}
		lines = append(lines, line)
	}
	return render.Table([]string{"BACKING", "AVAILABLE", "LARGEST", "SMALLEST", "SNAPSHOTS", "REASON"}, lines, s)
}
