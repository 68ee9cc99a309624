//go:build kube

package apisuite

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

var errKilled = errors.New("the process was killed here")

// killed is a connection that breaks at a write: before it reaches the API server, or before its answer returns. Nothing
// passes afterwards, as after the death of the process.
type killed struct {
	next http.RoundTripper
	at   int  // number of the write, from 1
	sent bool // the write reaches the API server

	mu     sync.Mutex
	writes int
	dead   bool
}

// killAt returns a configuration whose connection breaks at a write to a Volume, and a function that reports whether it
// did.
func killAt(config *rest.Config, at int, sent bool) (*rest.Config, func() bool) {
	k := &killed{at: at, sent: sent}
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		k.next = next
		return k
	})
	return out, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.dead
	}
}

func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	dead, here := k.dead, false
	if !dead && isVolumeWrite(r) {
		k.writes++
		here = k.writes == k.at
		k.dead = here
	}
	k.mu.Unlock()
	if dead || here && !k.sent {
		return nil, errKilled
	}
	resp, err := k.next.RoundTrip(r)
	if here {
		if err == nil {
			resp.Body.Close()
		}
		return nil, errKilled
	}
	return resp, err
}

func isVolumeWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && (strings.Contains(r.URL.Path, "/volumes") || strings.Contains(r.URL.Path, "/snapshots"))
}

// flaky is a slow connection that loses requests and answers.
type flaky struct {
	next http.RoundTripper
	mu   sync.Mutex
	rand *rand.Rand
}

func flakyConfig(config *rest.Config, seed uint64) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &flaky{next: next, rand: rand.New(rand.NewPCG(seed, 1))}
	})
	return out
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	before, after, fate := f.rand.IntN(200), f.rand.IntN(200), f.rand.IntN(10)
	f.mu.Unlock()
	if r.URL.Query().Get("watch") == "true" {
		return f.next.RoundTrip(r)
	}
	time.Sleep(time.Duration(before) * time.Millisecond)
	if fate == 0 {
		return nil, errors.New("the request is lost")
	}
	resp, err := f.next.RoundTrip(r)
	time.Sleep(time.Duration(after) * time.Millisecond)
	if fate == 1 && err == nil {
		resp.Body.Close()
		return nil, errors.New("the answer is lost")
	}
	return resp, err
}
