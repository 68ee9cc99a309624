package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// object is an object of Kubernetes.
type object = map[string]any

// apiServer answers as an API server that has the objects of a cluster: the lists and the streams of changes that a client
// follows. The tests of hack/kube/apisuite run the same commands against a real one.
type apiServer struct {
	addr    string
	refused string // a resource that this account may not list; it is set while the server is stopped

	mu      sync.Mutex
	server  *http.Server
	version int
	objects map[string]map[string]object // by resource and name
	log     []change
	more    chan struct{} // closed with the next change
}

type change struct {
	version  int
	resource string
	event    object
}

// kinds are the kinds of the resources, with their group and version.
var kinds = map[string][2]string{"drives": {"Drive", "drivebay.io/v1alpha1"}, "volumes": {"Volume", "drivebay.io/v1alpha1"}, "snapshots": {"Snapshot", "drivebay.io/v1alpha1"}, "leases": {"Lease", "coordination.k8s.io/v1"}}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{addr: "127.0.0.1:0", version: 1, objects: map[string]map[string]object{"drives": {}, "volumes": {}, "snapshots": {}, "leases": {}}, more: make(chan struct{})}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

// start answers, at the address of before if there was one.
func (s *apiServer) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp4", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(l) }()
}

func (s *apiServer) stop() { _ = s.server.Close() }

// put makes or changes objects, all at once.
func (s *apiServer) put(resource string, objects ...object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.version++
		meta := o["metadata"].(object)
		name := meta["name"].(string)
		o["kind"], o["apiVersion"], meta["resourceVersion"], meta["uid"] = kinds[resource][0], kinds[resource][1], fmt.Sprint(s.version), resource+"-"+name
		kind := "ADDED"
		if s.objects[resource][name] != nil {
			kind = "MODIFIED"
		}
		s.objects[resource][name] = o
		s.log = append(s.log, change{s.version, resource, object{"type": kind, "object": o}})
	}
	close(s.more)
	s.more = make(chan struct{})
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if kinds[resource][0] == "" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case resource == s.refused:
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden, "message": resource + " is forbidden"})
	case q.Get("sendInitialEvents") != "": // as a server without the feature WatchList: the client lists instead
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity})
	case q.Get("watch") != "":
		s.watch(w, r, resource, q.Get("resourceVersion"))
	default:
		s.mu.Lock()
		items := slices.Collect(maps.Values(s.objects[resource]))
		body, _ := json.Marshal(object{"kind": kinds[resource][0] + "List", "apiVersion": kinds[resource][1], "metadata": object{"resourceVersion": fmt.Sprint(s.version)}, "items": items})
		s.mu.Unlock()
		_, _ = w.Write(body)
	}
}

// watch sends what changes after a version.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource, after string) {
	var at int
	_, _ = fmt.Sscan(after, &at)
	c := http.NewResponseController(w)
	for {
		s.mu.Lock()
		more := s.more
		var out []byte
		for _, e := range s.log {
			if e.version > at && e.resource == resource {
				line, _ := json.Marshal(e.event)
				out = append(append(out, line...), '\n')
			}
		}
		at = s.version
		s.mu.Unlock()
		if _, err := w.Write(out); err != nil || c.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// fleet is what the cluster of the tests has: 200 nodes with 25 drives each.
const (
	fleetNodes  = 200
	fleetDrives = 25
)

func nodeName(n int) string { return fmt.Sprintf("storage-%d", n) }

// drive makes the object of a drive of a node.
func drive(n, bay int, change func(status object)) object {
	node := nodeName(n)
	id := fmt.Sprintf("naa-5000c500%04x%04x", n, bay)
	status := object{
		"node": node, "id": id, "device": fmt.Sprintf("sd%c", 'a'+bay-1), "type": "HDD", "size": "16 TB", "state": "ONLINE", "health": "GOOD", "usage": "IN_USE", "claimedBy": "configuration", "content": "ours",
		"identity": object{"vendor": "SEAGATE", "model": "ST16000NM002G", "serial": fmt.Sprintf("ZL2%03d%02d", n, bay)},
		"bay":      object{"enclosure": "500304802000", "name": fmt.Sprintf("Slot %02d", bay), "hasLight": true},
		"machine":  object{"vendor": "ACME", "product": "R740", "serial": fmt.Sprintf("CN%05d", n), "assetTag": fmt.Sprintf("rack %d", 1+n/20)},
		"capacity": object{"total": 16e12},
	}
	if bay > 22 {
		status["type"], status["size"], status["identity"].(object)["model"] = "NVME", "3.8 TB", "MZQL23T8HCLS"
	}
	if change != nil {
		change(status)
	}
	return object{"metadata": object{"name": id + "." + node, "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}
}

// finding gives a drive a health and its reason.
func finding(health, code, text, advice string) func(object) {
	return func(s object) {
		s["health"], s["findings"] = health, []object{{"code": code, "severity": health, "text": text, "advice": advice, "since": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)}}
	}
}

var (
	reallocated = finding("BAD", "ReallocatedSectors", "1,408 sectors are reallocated", "Replace the drive.")
	worn        = finding("SUSPECT", "WearHigh", "91 % of the rated endurance is used", "Plan its replacement.")
	silent      = finding("UNKNOWN", "NoAnswer", "the drive does not answer its health pages", "")
)

// lease is the Lease of a node that was renewed some time ago and holds from then on.
func lease(n int, ago, holds time.Duration) object {
	renewed := time.Now().Add(-ago)
	return object{
		"metadata": object{"name": "drivebay-node-" + nodeName(n), "namespace": "drivebay", "labels": object{"app.kubernetes.io/component": "drivebay-node"}, "annotations": object{"drivebay.io/report": `{"mirrored":true}`}},
		"spec":     object{"holderIdentity": nodeName(n), "leaseDurationSeconds": int(holds.Seconds()), "renewTime": renewed.UTC().Format("2006-01-02T15:04:05.000000Z")},
	}
}

func volume(n, i, bay int) object {
	id, health := fmt.Sprintf("vol%04d%02d", n, i), "GOOD"
	if n == 41 && bay == 8 || n == 120 && bay == 12 {
		health = "BAD"
	}
	return object{
		"metadata": object{"name": id, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec":     object{"node": nodeName(n), "name": fmt.Sprintf("pvc-%04d-%02d", n, i)},
		"status": object{"phase": "Ready", "size": "1 TiB", "capacity": 1 << 40, "health": health, "operationalStatus": "OPERATIVE", "usage": "IN_USE", "csiStatus": "CREATED",
			"location": object{"kind": "PARTITION", "drives": []string{fmt.Sprintf("naa-5000c500%04x%04x", n, bay)}}},
	}
}

// fleet fills the cluster with nodes: a drive of each kind of trouble, a node that is silent, one whose drive leaves.
func (s *apiServer) fleet(nodes ...int) {
	var drives, volumes, leases []object
	for _, n := range nodes {
		for bay := 1; bay <= fleetDrives; bay++ {
			var change func(object)
			switch {
			case n == 41 && bay == 8, n == 120 && bay == 12:
				change = reallocated
			case n == 77 && bay == 24, n == 12 && bay == 25, n == 150 && bay == 23:
				change = worn
			case n == 9 && bay == 3:
				change = silent
			case n == 63 && bay == 18:
				change = func(s object) { s["state"] = "OFFLINE" }
			case n == 88 && bay == 5:
				change = func(s object) {
					reallocated(s)
					s["usage"], s["removal"] = "RELEASING", object{"since": "2026-01-01T00:00:00Z", "why": "an operator", "percent": 42, "total": 4 << 40}
				}
			case n == 3 && bay == 9:
				change = func(s object) { s["cordoned"] = true }
			}
			drives = append(drives, drive(n, bay, change))
		}
		for i := 1; i <= 5; i++ {
			volumes = append(volumes, volume(n, i, 4*i))
		}
		ago, holds := time.Duration(0), time.Hour // no daemon renews them
		if n == 141 {
			ago, holds = 7*time.Minute, 40*time.Second
		}
		leases = append(leases, lease(n, ago, holds))
	}
	s.put("drives", drives...)
	s.put("volumes", volumes...)
	s.put("leases", leases...)
}

// newCluster returns an API server with nodes of the fleet, none: all, and a kubeconfig for it.
func newCluster(t *testing.T, nodes ...int) (*rig, *apiServer) {
	t.Helper()
	if nodes == nil {
		for n := range fleetNodes {
			nodes = append(nodes, n+1)
		}
	}
	api := newAPIServer(t)
	api.fleet(nodes...)
	r := &rig{T: t, dir: folder(t), first: "#nodes-body .cell"}
	write(t, r.dir+"/kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod, clusters: [{name: prod, cluster: {server: "http://%s"}}], contexts: [{name: prod, context: {cluster: prod, user: me}}], users: [{name: me, user: {}}]}`, api.addr))
	return r, api
}

// startCluster serves the page of a cluster as a person does, by the plugin of kubectl.
func startCluster(t *testing.T, nodes ...int) (*rig, *apiServer) {
	t.Helper()
	r, api := newCluster(t, nodes...)
	plugin := filepath.Join(r.dir, "kubectl-drivebay")
	if err := os.Symlink(program, plugin); err != nil {
		t.Fatal(err)
	}
	r.ui = []string{plugin, "ui", "--kubeconfig", r.dir + "/kubeconfig"}
	return r, api
}
