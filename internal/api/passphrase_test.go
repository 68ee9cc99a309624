package api

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestPassphraseIsNeverTold: whatever a call with a passphrase comes to, it reaches
// the engine or nobody.
func TestPassphraseIsNeverTold(t *testing.T) {
	const secret, class = "4711081547110815", `"parameters":{"drivebay.io/encryption":"luks2"}`
	create, expand := "/api/v1/volumes", "/api/v1/volumes/data-1/expand"
	for _, c := range []struct {
		path, body string
		fail       error
		status     int
		reached    bool
	}{
		{create, `{"name":"n",` + class + `,"passphrase":"` + secret + `"}`, nil, 200, true},
		{create, `{"name":"n",` + class + `,"passphrase":"` + secret + `"}`, fmt.Errorf("volume n: %w", drivebay.ErrSecret), 403, true},
		{create, `{"name":"n","passphrase":"` + secret + `"}`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":` + secret + `}`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":["` + secret + `"]}`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":"` + secret + ``, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":"` + secret + `"} "` + secret + `"`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrese":"` + secret + `"}`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":"` + secret + "\xff" + `"}`, nil, 400, false},
		{create, `{"name":"n",` + class + `,"passphrase":"` + strings.Repeat(secret, 257) + `"}`, nil, 400, false},
		{expand, `{"size":7,"passphrase":"` + secret + `"}`, nil, 200, true},
		{expand, `{"size":7,"passphrase":"` + secret + "\xff" + `"}`, nil, 400, false},
		{expand, `{"passphrase":"` + secret + `"}`, nil, 400, false},
	} {
		e, log := newEngine(3), &bytes.Buffer{}
		e.fail = c.fail
		v := newVolumes(e)
		v.node = true
		h := New(e, Options{Volumes: v, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}).Handler(false)
		w := ask(h, "POST", c.path, c.body)
		if w.Code != c.status || (v.secrets[drivebay.SecretPassphrase] == secret) != c.reached {
			t.Errorf("%s %s: status %d, reached the engine %v: %s", c.path, c.body, w.Code, v.secrets != nil, w.Body)
		}
		if told := fmt.Sprint(w.Body, w.Header(), log, e.asked()); strings.Contains(told, "4711") {
			t.Errorf("%s %s: it is told: %s", c.path, c.body, told)
		}
	}
	body := VolumeBody{Passphrase: secret}
	if text := fmt.Sprintf("%v %+v %#v %s %+v", body, &body, body, body.Passphrase, expandBody{Passphrase: secret}); strings.Contains(text, "4711") {
		t.Errorf("printed it is %s", text)
	}
}

// What is encrypted and in use waits for the passphrase; its device has grown.
func TestExpandWaitsForThePassphrase(t *testing.T) {
	e := newEngine(3)
	v := newVolumes(e)
	v.node = true
	v.Volumes().Volumes[0].LUKSUUID = "8f1c7a52-0000-4000-8000-000000000000"
	if w := ask(New(e, Options{Volumes: v}).Handler(false), "POST", "/api/v1/volumes/data-1/expand", `{"size":7}`); w.Code != 200 || len(e.asked()) != 1 {
		t.Errorf("status %d, asked %q: %s", w.Code, e.asked(), w.Body)
	}
}
