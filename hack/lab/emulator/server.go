package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/drivebay/drivebay/hack/lab/emul"
	"github.com/drivebay/drivebay/hack/lab/emul/tcmu"
)

// handler is the control interface; emul.Client is its other end.
func handler(devices []*tcmu.Device) http.Handler {
	byName := map[string]*tcmu.Device{}
	for _, d := range devices {
		byName[d.Unit.Name] = d
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /devices", func(w http.ResponseWriter, _ *http.Request) {
		states := make([]emul.State, len(devices))
		for i, d := range devices {
			states[i] = state(d)
		}
		answer(w, states)
	})
	verb := func(pattern string, do func(context.Context, *tcmu.Device, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d := byName[r.PathValue("name")]
			if d == nil {
				http.Error(w, fmt.Sprintf("there is no device %q", r.PathValue("name")), http.StatusNotFound)
				return
			}
			if err := do(r.Context(), d, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer(w, state(d))
		})
	}
	verb("GET /devices/{name}", func(context.Context, *tcmu.Device, *http.Request) error { return nil })
	verb("PATCH /devices/{name}", change)
	verb("POST /devices/{name}/plug", func(ctx context.Context, d *tcmu.Device, _ *http.Request) error { return d.Plug(ctx) })
	verb("POST /devices/{name}/unplug", func(_ context.Context, d *tcmu.Device, _ *http.Request) error { return d.Unplug() })
	verb("POST /devices/{name}/reset-counters", func(_ context.Context, d *tcmu.Device, _ *http.Request) error {
		d.Unit.ResetCounts()
		return nil
	})
	return mux
}

func change(_ context.Context, d *tcmu.Device, r *http.Request) error {
	var c emul.Change
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return fmt.Errorf("read the change: %w", err)
	}
	return d.Unit.Apply(c)
}

// state is the device with the names that the kernel gives it now.
func state(d *tcmu.Device) emul.State {
	s, n := d.Unit.State(), d.Names()
	s.Dev, s.Generic, s.Address = n.Dev, n.Generic, n.Address
	return s
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
