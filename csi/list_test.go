package csi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/protobuf/proto"
)

// ill is a volume with as many words against it as a condition can have.
func ill(id string) *drivebay.VolumeView {
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: id, Name: id, Size: 1 << 30, Mode: drivebay.ModeFS}}
	for i := range 16 {
		v.Condition = append(v.Condition, drivebay.VolumeFinding{Severity: drivebay.SeverityDegraded, Reason: fmt.Sprint("Reason", i), Message: strings.Repeat("m", 1024)})
	}
	return v
}

func well(id string) *drivebay.VolumeView {
	return &drivebay.VolumeView{Volume: drivebay.Volume{ID: id, Name: id, Size: 1 << 30, Mode: drivebay.ModeFS}}
}

func many(n int, make func(id string) *drivebay.VolumeView) *memory {
	var all []*drivebay.VolumeView
	for i := range n {
		all = append(all, make(fmt.Sprintf("id-%06d", i)))
	}
	return newMemory(all...)
}

// lists are the three that come in pages: a page of each, and the ids on it.
var lists = map[string]func(t *testing.T, c wire.ControllerClient, max int32, token string) (ids []string, next string, size int){
	"volumes": func(t *testing.T, c wire.ControllerClient, max int32, token string) (ids []string, next string, size int) {
		r, err := c.ListVolumes(t.Context(), &wire.ListVolumesRequest{MaxEntries: max, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			ids = append(ids, e.Volume.VolumeId)
		}
		return ids, r.NextToken, proto.Size(r)
	},
	"health": func(t *testing.T, c wire.ControllerClient, max int32, token string) (ids []string, next string, size int) {
		r, err := c.ControllerListVolumeHealth(t.Context(), &wire.ControllerListVolumeHealthRequest{MaxEntries: max, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			ids = append(ids, e.VolumeId)
		}
		return ids, r.NextToken, proto.Size(r)
	},
	"snapshots": func(t *testing.T, c wire.ControllerClient, max int32, token string) (ids []string, next string, size int) {
		r, err := c.ListSnapshots(t.Context(), &wire.ListSnapshotsRequest{MaxEntries: max, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			ids = append(ids, e.Snapshot.SnapshotId)
		}
		return ids, r.NextToken, proto.Size(r)
	},
}

// A walk sees what is there from its beginning to its end, once, while half of the
// rest comes and goes and the server is another one for each page.
func TestPages(t *testing.T) {
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			m := many(100, ill)
			for _, v := range m.Volumes().Volumes {
				m.Volumes().Snapshots = append(m.Volumes().Snapshots, drivebay.VolumeSnapshot{ID: v.ID, Source: "v"})
			}
			seen, token := map[string]int{}, ""
			for page := 0; page == 0 || token != ""; page++ {
				_, _, conn, _ := rig(t, m)
				ids, next, _ := list(t, wire.NewControllerClient(conn), 7, token)
				if len(ids) > 7 || len(next) > maxString {
					t.Fatalf("a page of %d, token %q", len(ids), next)
				}
				for _, id := range ids {
					seen[id]++
				}
				token = next
				churn(t, m, page, ids)
			}
			for id, n := range seen {
				if n != 1 {
					t.Errorf("%s was seen %d times", id, n)
				}
			}
			for i := 1; i < 100; i += 2 { // the odd ones were always there
				if id := fmt.Sprintf("id-%06d", i); seen[id] == 0 {
					t.Errorf("%s was not seen", id)
				}
			}
		})
	}
}

// churn takes away the even ones of a page, the one that the token names among
// them, and adds others before and behind.
func churn(t *testing.T, m *memory, page int, ids []string) {
	err := m.change(func(s *drivebay.VolumeSet) error {
		even := func(id string) bool { return slices.Contains(ids, id) && strings.ContainsAny(id[len(id)-1:], "02468") }
		s.Volumes = slices.DeleteFunc(s.Volumes, func(v *drivebay.VolumeView) bool { return even(v.ID) })
		s.Snapshots = slices.DeleteFunc(s.Snapshots, func(v drivebay.VolumeSnapshot) bool { return even(v.ID) })
		for _, id := range []string{fmt.Sprintf("id-0-%d", page), fmt.Sprintf("ie-%d", page)} {
			if page < 20 {
				s.Volumes = append(s.Volumes, ill(id))
				s.Snapshots = append(s.Snapshots, drivebay.VolumeSnapshot{ID: id})
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Without max_entries a page is as large as a client takes, and all of them
// together are the whole.
func TestPagesAreBounded(t *testing.T) {
	for name, m := range map[string]*memory{"volumes": many(6000, ill), "health": many(6000, ill), "well volumes": many(3*pageEntries, well)} {
		_, _, conn, _ := rig(t, m)
		list, count, token := lists[strings.TrimPrefix(name, "well ")], 0, ""
		for page := 0; page == 0 || token != ""; page++ {
			ids, next, size := list(t, wire.NewControllerClient(conn), 0, token)
			if size > 4<<20 || len(ids) == 0 {
				t.Fatalf("%s: a page of %d with %d bytes", name, len(ids), size)
			}
			count, token = count+len(ids), next
		}
		if want := len(m.Volumes().Volumes); count != want {
			t.Errorf("%s: %d in all, want %d", name, count, want)
		}
	}
}

// A page costs the same out of 100,000 as out of 2,000, wherever it begins. The two are measured in turn, and longer if they
// differ: what else the machine does then slows both.
func TestPagesAreFlat(t *testing.T) {
	sizes := [2]int{2_000, 100_000}
	var c [2]*controller
	for i, volumes := range sizes {
		c[i] = newController(New(&engine{}, Options{NodeID: "node-1", Volumes: many(volumes, well)}))
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	differ := func() bool { return best[1] > 3*best[0] }
	for turn := 0; turn < 30 || differ() && turn < 300; turn++ {
		for i := range c {
			began := time.Now()
			r, err := c[i].ListVolumes(t.Context(), page1000((sizes[i]-1001)*(turn%30)/29))
			if best[i] = min(best[i], time.Since(began)); err != nil || len(r.Entries) != 1000 {
				t.Fatalf("%d entries, %v", len(r.GetEntries()), err)
			}
		}
	}
	if differ() {
		t.Errorf("a page takes %v out of 2,000 and %v out of 100,000", best[0], best[1])
	}
}

func page1000(after int) *wire.ListVolumesRequest {
	return &wire.ListVolumesRequest{MaxEntries: 1000, StartingToken: listVolumes.token(fmt.Sprintf("id-%06d", after))}
}

// BenchmarkListVolumes is a page of 1000 out of 100,000; the budget is 10 ms.
func BenchmarkListVolumes(b *testing.B) {
	c := &controller{Server: New(&engine{}, Options{NodeID: "node-1", Volumes: many(100_000, well)})}
	c.volumes = c.opt.Volumes
	for b.Loop() {
		if _, err := c.ListVolumes(b.Context(), page1000(50_000)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestListSnapshotsFilters(t *testing.T) {
	m := newMemory()
	for i := range 10 {
		m.Volumes().Snapshots = append(m.Volumes().Snapshots, drivebay.VolumeSnapshot{ID: fmt.Sprint("s", i), Source: fmt.Sprint("v", i%2)})
	}
	_, _, conn, _ := rig(t, m)
	for _, c := range []struct {
		source, id string
		max        int32
		want       string
		more       bool
	}{
		{"", "", 0, "[s0 s1 s2 s3 s4 s5 s6 s7 s8 s9]", false}, {"v1", "", 0, "[s1 s3 s5 s7 s9]", false}, {"v1", "", 5, "[s1 s3 s5 s7 s9]", false},
		{"v0", "", 4, "[s0 s2 s4 s6]", true}, {"", "s3", 0, "[s3]", false}, {"v1", "s3", 1, "[s3]", false}, {"v0", "s3", 0, "[]", false}, {"no", "", 0, "[]", false},
	} {
		r, err := wire.NewControllerClient(conn).ListSnapshots(t.Context(), &wire.ListSnapshotsRequest{SourceVolumeId: c.source, SnapshotId: c.id, MaxEntries: c.max})
		ids := []string{}
		for _, e := range r.GetEntries() {
			ids = append(ids, e.Snapshot.SnapshotId)
		}
		if err != nil || fmt.Sprint(ids) != c.want || (r.NextToken != "") != c.more {
			t.Errorf("%+v: %v, next %q, %v", c, ids, r.GetNextToken(), err)
		}
	}
}
