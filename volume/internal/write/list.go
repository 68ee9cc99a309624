package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// ListAll lists the partitions of all drives that are here, each in its own goroutine: a
// drive that hangs holds up the others for ListTime at most.
func (e *Writer) ListAll(ctx context.Context, s *drivebay.Snapshot) (parts map[string][]partitions.Part, failed map[string]error) {
	type answer struct {
		id   string
		list []partitions.Part
		err  error
	}
	online := slices.DeleteFunc(slices.Clone(s.Drives), func(d drivebay.Drive) bool { return d.Status != drivebay.StatusOnline })
	came := make(chan answer, len(online))
	for i := range online {
		e.Running.Go(func() {
			var list []partitions.Part
			err := ledger.Safely(ctx, "drive "+online[i].ID, func(ctx context.Context) (err error) {
				list, err = e.Partitions.PartsNow(ctx, &online[i])
				if !errors.Is(err, drivebay.ErrTimeout) { // also if the names cannot be read: the table may be erased
					if err := e.compareLayout(ctx, &online[i], list); err != nil {
						e.Log.Warn("partition table not compared", "op", "look", "drive", online[i].ID, "err", err)
					}
				}
				return errors.Join(err, e.tableRead(&online[i], list))
			})
			came <- answer{online[i].ID, list, err}
		})
	}
	parts, failed = map[string][]partitions.Part{}, map[string]error{}
	for range online {
		if a := <-came; a.err != nil {
			failed[a.id] = a.err
		} else {
			parts[a.id] = a.list
		}
	}
	return parts, failed
}

// tableRead returns an error for a drive of ours whose partition table was not read yet: the kernel shows neither that a volume has left a
// partition, nor that its removal has begun.
func (e *Writer) tableRead(d *drivebay.Drive, parts []partitions.Part) error {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	_, read := e.Partitions.Tables[d.ID]
	if read || e.Partitions.Layouts[d.ID].Issue != "" || !slices.ContainsFunc(parts, func(p partitions.Part) bool { return ledger.IDOfPartition(p.Title) != "" }) {
		return nil
	}
	return fmt.Errorf("drive %s (%s): %w", d.ID, d.Name, partitions.Away("its partition table is not read yet"))
}
