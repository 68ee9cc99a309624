package volume_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestPublishTable is the specification's table for a second NodePublishVolume, for
// those who offer SINGLE_NODE_MULTI_WRITER: all kinds of access, the same path or
// another, the same arguments or others.
func TestPublishTable(t *testing.T) {
	t.Parallel()
	access := func(a drivebay.Access) func(*drivebay.PublishRequest) {
		return func(r *drivebay.PublishRequest) { r.Access = a }
	}
	onStand(t, func(s *stand) {
		ok, exists, busy := error(nil), drivebay.ErrExists, drivebay.ErrBusy
		others := map[string]func(*drivebay.PublishRequest){
			"options": func(r *drivebay.PublishRequest) { r.Options = []string{"noatime"} }, "read-only": func(r *drivebay.PublishRequest) { r.ReadOnly = true },
			"any": access(drivebay.AccessMultiWriter), "writer": access(drivebay.AccessWriter), "reader": access(drivebay.AccessReader), "single": access(drivebay.AccessSingleWriter),
		}
		for i, row := range []struct {
			first drivebay.Access
			other string   // argument
			want  [4]error // same path and arguments; other arguments; other path; both
		}{
			{drivebay.AccessSingleWriter, "options", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessSingleWriter, "any", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessWriter, "options", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessWriter, "read-only", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessWriter, "any", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessReader, "options", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessReader, "any", [4]error{ok, exists, busy, busy}},
			{drivebay.AccessMultiWriter, "options", [4]error{ok, exists, ok, ok}},
			{drivebay.AccessMultiWriter, "read-only", [4]error{ok, exists, ok, ok}},
			{drivebay.AccessMultiWriter, "writer", [4]error{ok, exists, ok, busy}},
			{drivebay.AccessMultiWriter, "reader", [4]error{ok, exists, ok, busy}},
			{drivebay.AccessMultiWriter, "single", [4]error{ok, exists, ok, busy}},
		} {
			for cell, want := range row.want {
				v := s.make(fmt.Sprintf("v%d-%d", i, cell), drivebay.VolumeRequest{})
				s.must(s.stage(v), s.publish(v, "one", access(row.first)))
				pod, change := "one", []func(*drivebay.PublishRequest){access(row.first)}
				if cell >= 2 {
					pod = "two"
				}
				if cell%2 == 1 {
					change = append(change, others[row.other])
				}
				if err := s.publish(v, pod, change...); !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("%v, then cell %d with another %s: %v, want %v", row.first, cell, row.other, err, want)
				}
				if want == ok && len(s.mounts(target(v, pod))) != 1 || len(s.mounts(target(v, "one"))) != 1 {
					t.Errorf("%v, cell %d: not exactly one mount", row.first, cell)
				}
				s.must(s.unpublish(v, "one"), s.unpublish(v, "two"), s.unstage(v))
			}
		}
	})
}
