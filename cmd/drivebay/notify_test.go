package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// hook is a webhook that keeps what it gets.
type hook struct {
	mu    sync.Mutex
	kinds []string
	wrong string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n struct{ Kind, Summary, Machine string }
	err := json.NewDecoder(r.Body).Decode(&n)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kinds = append(h.kinds, n.Kind)
	if err != nil || n.Machine != "rack" || n.Summary == "" || !strings.HasPrefix(r.Header.Get("X-Drivebay-Signature"), "v1=") {
		h.wrong = n.Summary + r.Header.Get("X-Drivebay-Signature")
	}
}

func (h *hook) got(kind string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.kinds, kind)
}

// The daemon sends a trial notice on request, and a notice when a drive turns BAD; its metrics count both.
func TestNotices(t *testing.T) {
	h := &hook{}
	server := httptest.NewServer(h)
	defer server.Close()
	dir := t.TempDir()
	script, config := filepath.Join(dir, "page.sh"), filepath.Join(dir, "c.yaml")
	write(t, filepath.Join(dir, "secret"), "s3cret\n")
	write(t, script, "#!/bin/sh\ncat >>"+dir+"/paged\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, config, "notify:\n  webhook: "+server.URL+"/x\n  secretFile: "+dir+"/secret\n  command: ["+script+"]\n")
	r, _ := rack(t, 4, "--config", config, "--listen", "127.0.0.1:0")
	if out, errs, code := call(t, r.env, "notify", "test"); code != exitOK || !strings.Contains(out, "webhook: delivered in ") || !strings.Contains(out, "command: delivered in ") || !h.got("trial") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	r.fault(t, "2", "fail")
	eventually(t, patience, func() bool { return h.got("bad") }, r.err.String)
	eventually(t, patience, func() bool {
		b, err := os.ReadFile(dir + "/paged")
		return err == nil && strings.Contains(string(b), `"kind":"bad"`)
	}, r.err.String)
	if h.wrong != "" {
		t.Errorf("a notice is wrong: %s", h.wrong)
	}
	address := regexp.MustCompile(`http://\S+/metrics`).FindString(r.out.String())
	eventually(t, patience, func() bool {
		resp, err := http.Get(address)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(page), `drivebay_notices_total{sink="webhook",result="delivered"}`)
	}, r.err.String)

	server.Close()
	if out, errs, code := call(t, r.env, "notify", "test"); code != exitFailure || !strings.Contains(out, "webhook: not delivered: post to ") || !strings.Contains(errs, "not delivered to 1 of 2") || strings.Contains(out, "/x") {
		t.Errorf("without the receiver: %d %q %q", code, out, errs)
	}
}

func TestNoticesNotConfigured(t *testing.T) {
	r, _ := rack(t, 1)
	if _, errs, code := call(t, r.env, "notify", "test"); code != exitFailure || !strings.Contains(errs, "neither notify.webhook nor notify.command is set") {
		t.Errorf("%d %q", code, errs)
	}
}

// An address that requires a token answers nothing without it, and a daemon whose token or certificate
// cannot be read does not start.
func TestTokenOverTCP(t *testing.T) {
	dir := t.TempDir()
	token, config := filepath.Join(dir, "token"), filepath.Join(dir, "c.yaml")
	write(t, token, "letmein\n")
	write(t, config, "http:\n  tokenFile: "+token+"\n")
	r, _ := rack(t, 1, "--config", config, "--listen", "127.0.0.1:0")
	address := regexp.MustCompile(`http://\S+/metrics`).FindString(r.out.String())
	for header, want := range map[string]int{"": 401, "Bearer letmein": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: status %d", header, resp.StatusCode)
		}
	}
	for _, text := range []string{"http: {tokenFile: " + dir + "/none}\n", "http: {certFile: " + token + ", keyFile: " + token + "}\n"} {
		write(t, config, text)
		_, errs, code := call(t, map[string]string{"DRIVEBAY_STATE_DIR": dir, "DRIVEBAY_API": "unix://" + filepath.Join(shortDir(t), "s")},
			"serve", "--sim", "../../examples/rack24.yaml", "--config", config, "--listen", "127.0.0.1:0")
		if code != exitFailure || !strings.Contains(errs, "token") {
			t.Errorf("%s: %d %q", text, code, errs)
		}
	}
}
