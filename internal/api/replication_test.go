package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// replicating is an engine that replicates volumes; it remembers its last call.
type replicating struct {
	last    string
	secret  string
	fail    error
	missing error
}

func (r *replicating) did(verb, id string, secrets drivebay.Secrets, rest ...any) error {
	r.last, r.secret = strings.TrimSpace(verb+" "+id+" "+fmt.Sprint(rest...)), secrets[drivebay.SecretReplication]
	return r.fail
}
func (r *replicating) Replicates(context.Context) error { return r.missing }
func (r *replicating) EnableReplication(_ context.Context, q drivebay.ReplicationRequest) error {
	return r.did("enable", q.Volume, q.Secrets, fmt.Sprintf("%s %s %s %d %v", q.Local, q.Peer, q.Protocol, q.MaxResyncRate, q.HoldsData))
}
func (r *replicating) DisableReplication(_ context.Context, c drivebay.ReplicationCall) error {
	return r.did("disable", c.Volume, c.Secrets, c.Force)
}
func (r *replicating) PromoteVolume(_ context.Context, c drivebay.ReplicationCall) error {
	return r.did("promote", c.Volume, c.Secrets, c.Force)
}
func (r *replicating) DemoteVolume(_ context.Context, c drivebay.ReplicationCall) error {
	return r.did("demote", c.Volume, c.Secrets, c.Force)
}
func (r *replicating) ResyncVolume(_ context.Context, c drivebay.ReplicationCall) (bool, error) {
	return c.Force, r.did("resync", c.Volume, c.Secrets, c.Force)
}
func (r *replicating) ReplicationInfo(_ context.Context, id string) (drivebay.ReplicationInfo, error) {
	return drivebay.ReplicationInfo{Status: drivebay.ReplicationError, State: "split brain", Message: "both sides were written", Conflict: drivebay.SplitBrain,
		OutOfSync: 4096, ReplicationPast: drivebay.ReplicationPast{LastSync: time.Unix(7, 0).UTC(), Bytes: 8192, Duration: 1500 * time.Millisecond}}, r.did("info", id, nil)
}

const replicationBody = `{"parameters":{"drivebay.io/localAddress":"10.0.0.1:7800","drivebay.io/peerAddress":"10.0.0.2:7800","drivebay.io/role":"source"},"secret":"4711081547110815"}`

// TestReplicationCalls: each call reaches the engine with the volume, its flags and its secret, or nothing does. The secret is in
// no answer and no log, whatever the call comes to.
func TestReplicationCalls(t *testing.T) {
	const secret, at = "4711081547110815", "/api/v1/volumes/"
	with := `{"secret":"` + secret + `"}`
	forced := `{"force":true,"secret":"` + secret + `"}`
	for _, c := range []struct {
		call, body string
		fail       error
		status     int
		want       string // what the engine gets
		answer     string
	}{
		{"data-1/replication/enable", replicationBody, nil, 204, "enable " + goodVolume + " 10.0.0.1:7800 10.0.0.2:7800 C 0 true", ""},
		{"data-1/replication/enable", replicationBody, fmt.Errorf("x: %w", drivebay.ErrSecret), 403, "enable " + goodVolume + " 10.0.0.1:7800 10.0.0.2:7800 C 0 true", "wrong_secret"},
		{"data/replication/enable", replicationBody, nil, 409, "", "ambiguous"},
		{"data-1/replication/enable", with, nil, 400, "", "drivebay.io/localAddress"},
		{"data-1/replication/enable", strings.Replace(replicationBody, `"drivebay.io/role"`, `"drivebay.io/rolle"`, 1), nil, 400, "", "unknown key"},
		{"data-1/replication/enable", strings.Replace(replicationBody, `0815"}`, "0815\xff\"}", 1), nil, 400, "", "UTF-8"},
		{"data-1/replication/enable", strings.Replace(replicationBody, `"secret"`, `"secrt"`, 1), nil, 400, "", "unknown field"},
		{"data-1/replication/disable", with, nil, 204, "disable " + goodVolume + " false", ""},
		{"data-1/replication/promote", forced, nil, 204, "promote " + goodVolume + " true", ""},
		{"data-1/replication/promote", with, fmt.Errorf("x: %w", drivebay.ErrRefused), 409, "promote " + goodVolume + " false", "refused"},
		{"data-1/replication/promote", `{"secret":"` + strings.Repeat(secret, 257) + `"}`, nil, 400, "", "longer than"},
		{"data-1/replication/demote", with, nil, 204, "demote " + goodVolume + " false", ""},
		{"data-1/replication/resync", with, nil, 200, "resync " + goodVolume + " false", `{"ready":false}`},
		{"data-1/replication/resync", forced, nil, 200, "resync " + goodVolume + " true", `{"ready":true}`},
		{"data-1/replication/resync", `{"secret":["` + secret + `"]}`, nil, 400, "", "invalid"},
	} {
		log, r := &bytes.Buffer{}, &replicating{fail: c.fail}
		e := newEngine(3)
		opt := Options{Volumes: newVolumes(e), Replication: r, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		w := ask(New(e, opt).Handler(false), "POST", at+c.call, c.body)
		if w.Code != c.status || r.last != c.want || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%s %s: status %d, the engine got %q: %s", c.call, c.body, w.Code, r.last, w.Body)
		}
		if (r.secret == secret) != (c.want != "") {
			t.Errorf("%s %s: the secret that the engine got is %q", c.call, c.body, r.secret)
		}
		if told := fmt.Sprint(w.Body, w.Header(), log); strings.Contains(told, "4711") {
			t.Errorf("%s %s: the answer has the secret: %s", c.call, c.body, told)
		}
	}
	body := ReplicationBody{Secret: secret}
	if text := fmt.Sprintf("%v %+v %#v %s %+v", body, &body, body, body.Secret, ReplicationCallBody{Secret: secret}); strings.Contains(text, "4711") {
		t.Errorf("printed it is %s", text)
	}
	c := ReplicationClient{Dial("http://10.0.0.1:1")}
	if err := c.Enable(t.Context(), "x", body); !errors.Is(err, drivebay.ErrRefused) || strings.Contains(err.Error(), "4711") {
		t.Errorf("the secret is sent over the network: %v", err)
	}
	if _, err := c.Resync(t.Context(), "x", ReplicationCallBody{Secret: secret}); !errors.Is(err, drivebay.ErrRefused) {
		t.Errorf("the secret is sent over the network: %v", err)
	}
}

// TestReplicationState: the state of one volume and of all, with what the machine lacks, and with what is not known.
func TestReplicationState(t *testing.T) {
	e, r := newEngine(3), &replicating{}
	v := newVolumes(e)
	h := New(e, Options{Volumes: v, Replication: r}).Handler(false)
	if w := ask(h, "GET", "/api/v1/volumes/data-1/replication", ""); w.Code != 409 || !strings.Contains(w.Body.String(), "not enabled") {
		t.Errorf("a volume that is not replicated: %d %s", w.Code, w.Body)
	}
	v.Volumes().Volumes[0].Replication = &drivebay.Replication{ReplicationLink: drivebay.ReplicationLink{Local: netip.MustParseAddrPort("10.0.0.1:7800"), Peer: netip.MustParseAddrPort("10.0.0.2:7800"), Protocol: "A"}, Primary: true}
	r.missing = fmt.Errorf("no drbdmeta: %w", drivebay.ErrNoSupport)
	var list ReplicationList
	w := ask(h, "GET", "/api/v1/replication", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Volumes) != 1 || !strings.Contains(list.Missing, "no drbdmeta") {
		t.Fatalf("%v %s", err, w.Body)
	}
	want := ReplicatedVolume{Volume: goodVolume, Name: "data-1", Role: "primary", Status: "error", State: "split brain", Message: "both sides were written", Conflict: "split brain", Protocol: "A",
		OutOfSync: 4096, ResyncBytes: 8192, ResyncSeconds: 1.5,
		Local: netip.MustParseAddrPort("10.0.0.1:7800"), Peer: netip.MustParseAddrPort("10.0.0.2:7800"), LastSync: time.Unix(7, 0).UTC()}
	if list.Volumes[0] != want {
		t.Errorf("%+v, want %+v", list.Volumes[0], want)
	}
	r.fail = fmt.Errorf("volume x: %w", drivebay.ErrPending)
	if w := ask(h, "GET", "/api/v1/volumes/data-1/replication", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"unknown"`) {
		t.Errorf("a volume whose replication is not known now: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/api/v1/replication", "/api/v1/volumes/data-1/replication"} {
		if w := ask(New(e, Options{Volumes: v}).Handler(false), "GET", path, ""); w.Code != 501 {
			t.Errorf("%s without what replicates: %d %s", path, w.Code, w.Body)
		}
	}
	v.Volumes().Volumes[0].Replication.Ended = true
	if w := ask(h, "GET", "/api/v1/volumes/data-1/replication", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"ended"`) {
		t.Errorf("a replication that ended too early: %d %s", w.Code, w.Body)
	}
}

// TestStatusWithoutReplication: the status says why replicated volumes cannot be used, and nothing where none is replicated.
func TestStatusWithoutReplication(t *testing.T) {
	e, r := newEngine(3), &replicating{missing: fmt.Errorf("no drbdmeta: %w", drivebay.ErrNoSupport)}
	v := newVolumes(e)
	h := New(e, Options{Volumes: v, Replication: r}).Handler(true)
	for _, c := range []struct {
		replication *drivebay.Replication
		missing     error
		want        string
	}{
		{nil, r.missing, ""}, {&drivebay.Replication{Disk: 1}, r.missing, "no drbdmeta"}, {&drivebay.Replication{Disk: 1}, drivebay.ErrUnavailable, ""}, {&drivebay.Replication{Disk: 1}, nil, ""},
	} {
		v.Volumes().Volumes[0].Replication, r.missing = c.replication, c.missing
		var st Status
		w := ask(h, "GET", "/api/v1/status", "")
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || !strings.Contains(st.Replication, c.want) || (st.Replication == "") != (c.want == "") {
			t.Errorf("%+v, %v: %v %s", c.replication, c.missing, err, w.Body)
		}
	}
}
