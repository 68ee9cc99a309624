package api

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"on":true}`, `{"on":"x"}`, `[`, `{"on":true}}`, "\xff", `{"kind":"short"}`} {
		f.Add(s, "sda")
	}
	e := newEngine(1)
	h := New(e, Options{}).Handler(false)
	f.Fuzz(func(t *testing.T, body, id string) {
		for _, verb := range []string{"cordon", "selftest", "acknowledge"} {
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			r.URL.Path = "/api/v1/drives/" + id + "/" + verb
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == 500 {
				t.Errorf("%q: %s", body, w.Body)
			}
			if out, _ := io.ReadAll(w.Body); w.Code >= 400 && !json.Valid(out) {
				t.Errorf("%q: no JSON: %s", body, out)
			}
		}
		e.mu.Lock()
		e.calls = nil
		e.mu.Unlock()
	})
}
