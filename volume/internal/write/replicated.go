package write

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// MarkReplicated returns the step that marks the piece of a volume as replicated, or removes the mark. A logical volume
// then gets the identity of what is on it: the tags that it was made with name what the peer's data have replaced.
func (e *Writer) MarkReplicated(name string, v *drivebay.Volume, on bool) steps.Step {
	if v.Location.OnLVM() {
		return e.LVMStep(name, v.Location, new(atomic.Bool), func(r *lvm.Report) ([]lvm.Step, error) { return e.replicatedTags(r, v, on) })
	}
	drive := v.Location.Drives[0]
	entry := func(t *gpt.Table) *gpt.Partition {
		i := slices.IndexFunc(t.Partitions, func(p gpt.Partition) bool { return strings.EqualFold(p.GUID, v.Location.Partition) })
		if i < 0 {
			return nil
		}
		return &t.Partitions[i]
	}
	is := func(p *gpt.Partition) bool {
		return p != nil && (p.TypeAttributes&partitions.AttributeReplicated != 0) == on
	}
	return steps.Step{
		Name: name,
		Done: func(ctx context.Context) (bool, error) {
			return e.QueryTable(ctx, drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) { return is(entry(t)), nil })
		},
		Do: func(ctx context.Context) error {
			return e.WithTable(ctx, drive, func(_ context.Context, disk host.Disk, t *gpt.Table) error {
				p := entry(t)
				if p == nil {
					return notThere(v)
				}
				p.TypeAttributes ^= partitions.AttributeReplicated
				return t.Write(disk)
			})
		},
	}
}

func notThere(v *drivebay.Volume) error {
	return fmt.Errorf("volume %s: its piece: %w", v.ID, drivebay.ErrNotFound)
}

func (e *Writer) replicatedTags(r *lvm.Report, v *drivebay.Volume, on bool) ([]lvm.Step, error) {
	lv := partitions.LVOf(r, v.Location)
	if lv == nil {
		return nil, notThere(v)
	}
	want := map[string]string{partitions.KeyReplicated: "", groups.KeyUUID: v.FSUUID, groups.KeyLUKS: v.LUKSUUID}
	if on {
		want = map[string]string{partitions.KeyReplicated: "yes"}
	}
	add, del := map[string]string{}, map[string]string{}
	for key, value := range want {
		if have := partitions.TagOf(lv, key); have != value {
			add[key], del[key] = value, have
		}
	}
	if len(add) == 0 {
		return nil, nil
	}
	added, err := groups.Tags(add)
	if err != nil {
		return nil, err
	}
	deleted, err := groups.Tags(del)
	if err != nil {
		return nil, err
	}
	return lvm.TagVolume(v.Location.VG, v.Location.LV, added, deleted)
}
