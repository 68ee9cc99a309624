package csiaddons

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cluster answers for an API server: it keeps what is put into it under its path and
// gives it back, which is all that the programs want of one.
type cluster struct {
	server  *httptest.Server
	account string // a folder with the credentials of a pod

	mu      sync.Mutex
	objects map[string]any
	asked   map[string]bool // every path that was read
}

type object = map[string]any

func newCluster(t *testing.T, account string) *cluster {
	c := &cluster{account: account, objects: map[string]any{}, asked: map[string]bool{}}
	c.server = httptest.NewTLSServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.server.Close)
	if err := os.Mkdir(account, 0o700); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	write(t, filepath.Join(account, "ca.crt"), string(ca))
	write(t, filepath.Join(account, "token"), "a token")
	return c
}

// environ is where a pod finds the API server.
func (c *cluster) environ() []string {
	u, _ := url.Parse(c.server.URL)
	host, port, _ := net.SplitHostPort(u.Host)
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

func (c *cluster) put(path string, o any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[path] = o
}

// know puts a kind of object into what clients find out about a cluster.
func (c *cluster) know(group, version, kind string) {
	v := object{"groupVersion": group + "/" + version, "version": version}
	plural := strings.ToLower(kind) + "s"
	c.put("/api", object{"kind": "APIVersions", "versions": []string{"v1"}})
	c.put("/api/v1", object{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{}})
	c.put("/apis", object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{object{"name": group, "versions": []any{v}, "preferredVersion": v}}})
	c.put("/apis/"+group+"/"+version, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": v["groupVersion"], "resources": []any{
		object{"name": plural, "singularName": strings.ToLower(kind), "namespaced": true, "kind": kind, "verbs": []string{"get", "list", "create", "update", "watch"}}}})
}

// get finds the one object below a path.
func (c *cluster) get(below string) (object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, o := range c.objects {
		if strings.HasPrefix(path, below) {
			o, ok := o.(object)
			return o, ok
		}
	}
	return nil, false
}

func (c *cluster) wasAsked(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[path]
}

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case r.URL.Query().Get("watch") != "":
		<-r.Context().Done() // nothing ever changes
		return
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		var o object
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &o)
		}
		meta, _ := o["metadata"].(object)
		name, _ := meta["name"].(string)
		if err != nil || name == "" {
			http.Error(w, "only JSON is understood here", http.StatusUnsupportedMediaType)
			return
		}
		if r.Method == http.MethodPost {
			path += "/" + name
		}
		c.put(path, o)
	}
	c.mu.Lock()
	o, ok := c.objects[path]
	c.asked[path] = true
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		o = object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound, "message": path}
	}
	_ = json.NewEncoder(w).Encode(o)
}
