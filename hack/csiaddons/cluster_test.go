package csiaddons

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// cluster answers for an API server: it keeps what is put into it under its path and
// gives it back, which is all that the programs want of one.
type cluster struct {
	server  *httptest.Server
	account string // a folder with the credentials of a pod

	mu      sync.Mutex
	objects map[string]any
	asked   map[string]bool // every request, as "GET /path"
	rights  []right         // of the account, if it is restricted
	refused []string        // requests that these rights do not allow
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

func (c *cluster) wasAsked(request string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[request]
}

// restrict refuses from now on what rights do not allow.
func (c *cluster) restrict(rights []right) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rights = rights
}

func (c *cluster) refusals() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refused)
}

// admit notes a request, and reports whether it is allowed.
func (c *cluster) admit(method, path string, watch bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[method+" "+path] = true
	if c.rights == nil || allows(c.rights, method, path, watch) {
		return true
	}
	c.refused = append(c.refused, method+" "+path)
	return false
}

// decode reads the object of a request: clients send those of Kubernetes itself as protobuf.
func decode(r *http.Request) (o object, err error) {
	b, err := io.ReadAll(r.Body)
	if err == nil && strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		typed, _, decodeErr := scheme.Codecs.UniversalDeserializer().Decode(b, nil, nil)
		if decodeErr != nil {
			return nil, decodeErr
		}
		if b, err = json.Marshal(typed); err == nil {
			gvk := typed.GetObjectKind().GroupVersionKind()
			o = object{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}
		}
	}
	return o, errors.Join(err, json.Unmarshal(b, &o))
}

func reply(w http.ResponseWriter, code int, o any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	path, watch := r.URL.Path, r.URL.Query().Get("watch") != ""
	if !c.admit(r.Method, path, watch) {
		reply(w, http.StatusForbidden, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden, "message": path})
		return
	}
	switch {
	case watch:
		<-r.Context().Done() // nothing ever changes
		return
	case strings.HasSuffix(path, "/tokenreviews"):
		reply(w, http.StatusCreated, object{"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": object{}, "spec": object{}, "status": object{"authenticated": true}})
		return
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		o, err := decode(r)
		meta, _ := o["metadata"].(object)
		name, _ := meta["name"].(string)
		if err != nil || name == "" {
			http.Error(w, fmt.Sprintf("object %q: %v", name, err), http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			path += "/" + name
		}
		c.put(path, o)
	}
	c.mu.Lock()
	o, ok := c.objects[path]
	c.mu.Unlock()
	if !ok {
		reply(w, http.StatusNotFound, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound, "message": path})
		return
	}
	reply(w, http.StatusOK, o)
}
