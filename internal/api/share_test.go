package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestShare opens the socket to the group of this process, whose user keeps all rights.
func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "drivebay.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	mode := func() os.FileMode {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode().Perm()
	}
	if mode() != 0o600 || l.shared {
		t.Errorf("before: mode %v", mode())
	}
	if _, err := l.Share("no-such-group"); err == nil || mode() != 0o600 || !strings.Contains(err.Error(), "no-such-group") {
		t.Errorf("a group that does not exist: %v, mode %v", err, mode())
	}
	gid := strconv.Itoa(os.Getegid())
	if l, err = l.Share(gid); err != nil || mode() != 0o660 {
		t.Fatalf("%v, mode %v", err, mode())
	}
	want := gid
	if g, err := user.LookupGroupId(gid); err == nil {
		want = g.Name
	}
	if got := denied(path); got != "use sudo or join the group "+want {
		t.Errorf("a user without access reads %q", got)
	}
	if got := denied(path + ".no"); !strings.Contains(got, "socketGroup") {
		t.Errorf("a user without access to another socket reads %q", got)
	}
	e := newEngine(3)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := full(e)
	go func() { ended <- server.Serve(ctx, l) }()
	c := Dial("unix://" + path)
	defer c.Close()
	if err := c.Refresh(t.Context()); err != nil {
		t.Errorf("the user of the daemon: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSharedReads: on a shared socket only root and the user of the daemon may change something.
func TestSharedReads(t *testing.T) {
	e := newEngine(3)
	h := full(e).handlerOf(Listener{shared: true})
	post := func(ctx context.Context) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/api/v1/refresh", nil))
		return w
	}
	as := func(uid int) context.Context { return context.WithValue(t.Context(), peerKey{}, uint32(uid)) }
	for uid, want := range map[int]int{0: http.StatusNoContent, os.Geteuid(): http.StatusNoContent, os.Geteuid() + 1: http.StatusForbidden} {
		if w := post(as(uid)); w.Code != want {
			t.Errorf("user %d: status %d, want %d: %s", uid, w.Code, want, w.Body)
		}
	}
	if w := post(t.Context()); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "use sudo") {
		t.Errorf("a user that the kernel does not name: status %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(as(os.Geteuid()+1), "GET", "/api/v1/drives", nil))
	if w.Code != http.StatusOK {
		t.Errorf("a member reads: status %d %s", w.Code, w.Body)
	}
}
