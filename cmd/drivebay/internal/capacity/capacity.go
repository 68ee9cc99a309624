// Package capacity shows the space for volumes of each backing.
package capacity

import (
	"context"
	"errors"
	"maps"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
)

// Row is the capacity for volumes of one backing.
type Row struct {
	Backing drivebay.Backing `json:"backing"`
	*api.Capacity
	Against string `json:"against,omitempty"` // why no volume can be made
}

// Of returns the capacity for the backing that is named, or for each.
func Of(ctx context.Context, client *api.Client, parameters map[string]string) ([]Row, error) {
	all := []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror}
	if one, ok := parameters[drivebay.ParameterBacking]; ok {
		all = []drivebay.Backing{drivebay.Backing(one)}
	}
	var rows []Row
	for _, b := range all {
		asked := maps.Clone(parameters)
		asked[drivebay.ParameterBacking] = string(b)
		c, err := client.Capacity(ctx, asked)
		switch {
		case err == nil:
			rows = append(rows, Row{Backing: b, Capacity: &c})
		case errors.Is(err, drivebay.ErrNoSupport) && len(all) > 1 && b != drivebay.BackingPartition: // partitions work wherever volumes do
			rows = append(rows, Row{Backing: b, Against: err.Error()})
		default:
			return nil, err
		}
	}
	return rows, nil
}

// Draw draws rows as a table.
func Draw(rows []Row, s render.Style) string {
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
