package drives

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

// statusAPI is an API server that takes each object, and no status while it has a refusal: a code.
type statusAPI struct{ refusal, version int }

func (a *statusAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	o := &v1alpha1.Drive{}
	if err := json.NewDecoder(r.Body).Decode(o); err != nil {
		return nil, err
	}
	a.version++
	o.UID, o.ResourceVersion, o.Generation = "u", strconv.Itoa(a.version), 1
	code := http.StatusOK
	text, err := json.Marshal(o)
	if strings.HasSuffix(r.URL.Path, "/status") && a.refusal != 0 {
		code = a.refusal
		text = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden"}`)
		if code >= 500 {
			text = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError"}`)
		}
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
}

// twoDrives is an engine that knows two drives.
type twoDrives struct {
	Engine
	s drivebay.Snapshot
}

func (e *twoDrives) Snapshot() *drivebay.Snapshot { return &e.s }
func (e *twoDrives) Unready() []string            { return nil }

// realClock is the time of the bubble.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestOldObjects: an object whose status the API server does not take for half a minute is old, until it takes it. If the API
// server takes no object, all are.
func TestOldObjects(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		synctest.Test(t, func(t *testing.T) {
			api := &statusAPI{}
			c, err := client.New(&rest.Config{Host: "http://api", Transport: api, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			e := &twoDrives{s: drivebay.Snapshot{Seq: 1, Complete: true, Drives: []drivebay.Drive{{ID: "naa-1", Health: drivebay.HealthGood}, {ID: "naa-2", Health: drivebay.HealthGood}}}}
			m := New(client.NewDrives(c), Options{Node: "n1", Engine: e, Clock: realClock{}, Log: slog.New(slog.DiscardHandler)})
			_ = m.objects.Replace(nil, "1")
			during := func(d time.Duration) (old []string) {
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
					m.round(context.Background())
				}
				old = m.old()
				slices.Sort(old)
				return old
			}
			if old := during(2 * time.Minute); len(old) > 0 {
				t.Errorf("%d: all are written, and old are %v", code, old)
			}
			api.refusal = code
			e.s.Drives[0].Health = drivebay.HealthBad
			if old := during(20 * time.Second); len(old) > 0 {
				t.Errorf("%d: at once old are %v", code, old)
			}
			want := map[int][]string{http.StatusForbidden: {"naa-1.n1"}, http.StatusInternalServerError: {"naa-1.n1", "naa-2.n1"}}[code]
			if old := during(time.Minute); !slices.Equal(old, want) {
				t.Errorf("%d: old are %v, want %v", code, old, want)
			}
			api.refusal = 0
			if old := during(10 * time.Minute); len(old) > 0 {
				t.Errorf("%d: after that old are %v", code, old)
			}
		})
	}
}
