package partitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Drive finds an online drive by its id.
func (e *Catalog) Drive(id string) (*drivebay.Drive, error) {
	d, ok := steps.DriveOf(e.Drives.Snapshot(), id)
	switch {
	case !ok:
		return nil, fmt.Errorf("drive %s: %w", id, drivebay.ErrNotFound)
	case d.Status != drivebay.StatusOnline:
		return nil, fmt.Errorf("drive %s: %w", id, Away("it is %v", d.Status))
	}
	return d, nil
}

// TableGUID returns the GUID of our partition table on a drive. It identifies an empty table
// that a killed process left.
func TableGUID(drive string) string { return drivebay.TableGUID(drive) }

// NewTable returns an empty partition table for a drive.
func NewTable(disk gpt.Disk, d *drivebay.Drive) (*gpt.Table, error) {
	t, err := gpt.New(disk)
	if err == nil {
		t.GUID = TableGUID(d.ID)
	}
	return t, err
}

// Formats returns the formats of all signatures of a drive as text.
func Formats(c drivebay.Content) string {
	var out []string
	for _, s := range c.Signatures {
		out = append(out, s.Format)
	}
	return strings.Join(out, ", ")
}

// KeepTable remembers a drive's partitions: the kernel does not know the names of those that
// the engine has added.
func (e *Catalog) KeepTable(drive string, parts []gpt.Partition) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	e.Tables[drive] = slices.Clone(parts)
}

// TypeOf returns the type of a partition in the table as it was last read or written: a listing in which udev has named all partitions does not
// know it. Ledger.Mu is held.
func (e *Catalog) TypeOf(drive string, p Part) string {
	i := slices.IndexFunc(e.Tables[drive], func(k gpt.Partition) bool {
		return k.Number == p.Number && k.Start == p.Start && strings.EqualFold(k.GUID, p.GUID)
	})
	if i < 0 {
		return p.Kind
	}
	return e.Tables[drive][i].Type
}

// Lacks reports whether a drive is listed with its partitions, and none of them has the GUID, or an unknown one.
func (e *Catalog) Lacks(drive, guid string) bool {
	if e.LayoutOf(drive) != "" {
		return false
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	parts := e.Index.Parts[drive]
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p Part) bool { return p.GUID == "" || strings.EqualFold(p.GUID, guid) })
}

// title fills in the names that the kernel does not know, from the table as it was last read.
// If one is missing there, it reads the table now.
func (e *Catalog) title(ctx context.Context, d *drivebay.Drive, list []Part) error {
	e.Ledger.Mu.Lock()
	known := e.Tables[d.ID]
	e.Ledger.Mu.Unlock()
	if misheard(list, known) && d.Content.Kind != drivebay.ContentForeign && !Stuck(*d) {
		if now, err := e.ReadTitles(ctx, d); err == nil {
			known = now
			correct(list, known)
		}
	}
	fill(list, known)
	confirm(list, known)
	switch {
	case !slices.ContainsFunc(list, nameless) && slices.ContainsFunc(list, unidentified) && d.Content.Kind == drivebay.ContentOurs:
		if known, err := e.ReadTitles(ctx, d); err == nil { // else the name is enough until it is used
			correct(list, known)
			fill(list, known)
			confirm(list, known)
		}
		return nil
	case !slices.ContainsFunc(list, nameless) || d.Content.Kind == drivebay.ContentForeign:
		return nil
	case d.Content.Kind != drivebay.ContentOurs: // a drive that was blank was read before it had partitions
		return fmt.Errorf("%w: %s", drivebay.ErrUnavailable, NotReadYet(d))
	case Stuck(*d):
		return fmt.Errorf("%w: it does not answer", drivebay.ErrUnavailable)
	}
	known, err := e.ReadTitles(ctx, d)
	fill(list, known)
	return err
}

func nameless(p Part) bool { return p.Title == "" }

// unidentified reports whether only the name of a partition of ours is known. The database of udev may still have the GUID of the partition that
// had this place before, which has the same name if a volume was made again.
func unidentified(p Part) bool {
	return (p.GUID == "" || p.heard.guid) && (ledger.IDOfPartition(p.Title) != "" || strings.HasPrefix(p.Title, ledger.PVPrefix))
}

// wrong reports whether what was heard of a partition is not what the table says.
func (h heard) wrong(p Part, k gpt.Partition) bool {
	return k.Number == p.Number && k.Start == p.Start && (h.title && p.Title != k.Name || h.guid && !SameGUID(p.GUID, k.GUID))
}

// misheard reports whether udev and the table as it was last read say different things of a partition: the
// one or the other is older.
func misheard(list []Part, known []gpt.Partition) bool {
	return slices.ContainsFunc(list, func(p Part) bool {
		return slices.ContainsFunc(known, func(k gpt.Partition) bool { return p.heard.wrong(p, k) })
	})
}

// correct takes from a table that was just read what was heard of partitions.
func correct(list []Part, known []gpt.Partition) {
	for i := range list {
		p := &list[i]
		for _, k := range known {
			if !p.heard.wrong(*p, k) {
				continue
			}
			if p.heard.title {
				p.Title = k.Name
			}
			if p.heard.guid {
				p.GUID = k.GUID
			}
			p.heard = heard{}
		}
	}
}

// confirm takes what was heard of partitions for true where the table says the same.
func confirm(list []Part, known []gpt.Partition) {
	for i := range list {
		p := &list[i]
		if slices.ContainsFunc(known, func(k gpt.Partition) bool {
			return k.Number == p.Number && k.Start == p.Start && strings.EqualFold(k.GUID, p.GUID)
		}) {
			p.heard.guid = false
		}
	}
}

func fill(list []Part, known []gpt.Partition) {
	for i := range list {
		for _, k := range known {
			p := &list[i]
			if k.Number != p.Number || k.Start != p.Start || !SameGUID(p.GUID, k.GUID) {
				continue
			}
			if p.Title == "" {
				p.Title = k.Name
			}
			if p.Title == k.Name {
				p.GUID, p.Kind = k.GUID, k.Type
			}
		}
	}
}

// ReadTitles reads the table of a drive, and writes nothing.
func (e *Catalog) ReadTitles(ctx context.Context, d *drivebay.Drive) ([]gpt.Partition, error) {
	return steps.Through(ctx, e.Steps, "read "+d.ID, ListTime, func(ctx context.Context) ([]gpt.Partition, error) {
		drive, err := e.Open(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		defer drive.Close()
		t, err := gpt.Read(OnlyRead{OpenDrive: drive, D: d})
		if errors.Is(err, gpt.ErrNone) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		e.KeepTable(d.ID, t.Partitions)
		return t.Partitions, nil
	})
}

// OnlyRead is a drive that was opened for reading, as a disk.
type OnlyRead struct {
	host.OpenDrive
	D *drivebay.Drive
}

func (r OnlyRead) Size() uint64 { return r.D.Size }

func (r OnlyRead) BlockSize() int { return max(r.D.LogicalBlock, 512) }

func (r OnlyRead) Sync() error { return nil }

func (r OnlyRead) WriteAt([]byte, int64) (int, error) {
	return 0, fmt.Errorf("drive %s: %w: it was opened to be read", r.D.ID, drivebay.ErrRefused)
}
