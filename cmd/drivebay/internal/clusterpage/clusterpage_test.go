package clusterpage

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/kubectl"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/page"
)

// fleet is a cluster of 200 nodes with 25 drives each.
type fleet struct {
	mu       sync.Mutex
	snapshot *drivebay.Snapshot
	away     string
	version  uint64
}

func newFleet() *fleet {
	s := &drivebay.Snapshot{Seq: 1, Complete: true, Machine: drivebay.Machine{Name: "prod", Kind: "cluster"}}
	for i := range 5000 {
		node := fmt.Sprint("storage-", i/25)
		s.Drives = append(s.Drives, drivebay.Drive{
			ID: fmt.Sprintf("naa-5000c500%08x.%s", i, node), Node: node, Name: "sda", Identity: drivebay.Identity{Vendor: "SEAGATE", Model: "ST16000NM002G", Serial: fmt.Sprintf("ZL2%05d", i), Size: 16e12},
			Slot: drivebay.Slot{Enclosure: node + "/500304802000", Bay: fmt.Sprintf("Slot %02d", i%25), Locate: "the Drive object"}, Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Usage: drivebay.UsageInUse,
			Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator},
		})
	}
	slices.SortFunc(s.Drives, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	return &fleet{snapshot: s, version: 1}
}

// change publishes a snapshot with one drive changed.
func (f *fleet) change(i int, do func(*drivebay.Drive)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := *f.snapshot
	next.Drives = slices.Clone(next.Drives)
	do(&next.Drives[i])
	next.Seq++
	f.snapshot = &next
	f.version++
}

func (f *fleet) Version() uint64                         { f.mu.Lock(); defer f.mu.Unlock(); return f.version }
func (f *fleet) Snapshot() *drivebay.Snapshot            { f.mu.Lock(); defer f.mu.Unlock(); return f.snapshot }
func (f *fleet) Volumes() *drivebay.VolumeSet            { return &drivebay.VolumeSet{} }
func (f *fleet) Machines() map[string]*drivebay.Hardware { return nil }
func (f *fleet) Down() map[string]string                 { return nil }
func (f *fleet) Heard() (time.Time, string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Time{}, f.away, false
}

// A stream begins with all nodes, and sends only the node of a drive that changes. Its texts name the commands of kubectl.
func TestStream(t *testing.T) {
	f := newFleet()
	stop := make(chan struct{})
	defer close(stop)
	srv := httptest.NewServer(New(f, "v1", time.Now(), stop))
	t.Cleanup(srv.CloseClientConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/ui/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	// next returns the nodes that are sent up to the next head, the head, and the bytes of both.
	next := func() (nodes []page.Node, head page.Cluster, size int) {
		t.Helper()
		part := false
		for lines.Scan() {
			size += len(lines.Bytes()) + 1
			body, data := strings.CutPrefix(lines.Text(), "data: ")
			switch {
			case lines.Text() == "event: part":
				part = true
			case data && part:
				var n struct {
					Name       string
					Enclosures []page.Enclosure
				}
				if err := json.Unmarshal([]byte(body), &n); err != nil {
					t.Fatal(err)
				}
				nodes, part = append(nodes, page.Node{Name: n.Name, Enclosures: n.Enclosures}), false
			case data:
				var h struct {
					Nodes    []string
					Overview struct{ Next string }
				}
				if err := json.Unmarshal([]byte(body), &h); err != nil {
					t.Fatal(err)
				}
				head.Nodes, head.Overview.Next = h.Nodes, h.Overview.Next
				return nodes, head, size
			}
		}
		t.Fatal("the stream has ended")
		return nil, head, 0
	}
	nodes, head, size := next()
	t.Logf("5,000 drives: %d KiB after %v", size>>10, time.Since(began).Round(time.Millisecond))
	if len(nodes) != 200 || len(head.Nodes) != 200 || size > 2<<20 || !strings.Contains(head.Overview.Next, "`kubectl drivebay tree`") {
		t.Errorf("%d nodes, %d names, %d bytes, next: %s", len(nodes), len(head.Nodes), size, head.Overview.Next)
	}
	f.change(4711, func(d *drivebay.Drive) { d.Health = drivebay.HealthBad })
	nodes, head, size = next()
	if len(nodes) != 1 || nodes[0].Name != f.Snapshot().Drives[4711].Node || len(head.Nodes) != 200 || head.Nodes[0] != nodes[0].Name || size > 20<<10 {
		t.Errorf("after a change: %d nodes, %d names, %d bytes", len(nodes), len(head.Nodes), size)
	}
}

// BenchmarkChange is what a change of one of 5,000 drives costs while a page is open.
func BenchmarkChange(b *testing.B) {
	f := newFleet()
	for i := 0; b.Loop(); i++ {
		f.change(i%5000, func(d *drivebay.Drive) { d.Cordoned = !d.Cordoned })
		head, nodes := page.OfCluster(page.ClusterInput{Drives: f.Snapshot(), Volumes: f.Volumes()})
		for _, of := range []any{head, nodes} {
			body, err := json.Marshal(of)
			if err != nil {
				b.Fatal(err)
			}
			kubectl.Words(body)
		}
	}
}
