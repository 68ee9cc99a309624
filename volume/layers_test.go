package volume_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// layerLog is what a test sees of a layer of its own in the stack of each volume.
type layerLog struct {
	s     *stand
	open  map[string]bool
	calls []string
}

// testLayer shows the device below it while it is open, as a replicated device would.
type testLayer struct {
	log   *layerLog
	v     *drivebay.Volume
	below device.Stack
}

func (g *layerLog) kind(v *drivebay.Volume, below device.Stack) device.Layer {
	return &testLayer{g, v, below}
}

// note writes down a call, with what is there at that moment: the device below, the decrypted device, and
// the mount.
func (l *testLayer) note(call string) {
	state := func(name string, is bool) string {
		if is {
			return " " + name
		}
		return ""
	}
	d, err := l.below.State()
	_, plain := l.log.s.plain(*l.v)
	if call == "grow" {
		call += fmt.Sprintf(" to %d MiB", d.Size>>20)
	}
	l.log.calls = append(l.log.calls, call+":"+state("below", err == nil)+state("plain", plain)+state("mounted", len(l.log.s.mounts(staging(*l.v))) > 0))
}

func (l *testLayer) State() (mounttable.Device, error) {
	if !l.log.open[l.v.ID] {
		return mounttable.Device{}, fmt.Errorf("test layer: %w", drivebay.ErrNotFound)
	}
	return l.below.State()
}

func (l *testLayer) Open(context.Context, device.Opening) (mounttable.Device, error) {
	if !l.log.open[l.v.ID] {
		l.note("open")
	}
	l.log.open[l.v.ID] = true
	return l.State()
}

func (l *testLayer) Grow(context.Context, device.Opening) error {
	l.note("grow")
	return nil
}

func (l *testLayer) Close(context.Context) error {
	l.note("close")
	delete(l.log.open, l.v.ID)
	return nil
}

// Create opens the layer for what is made above it.
func (l *testLayer) Create(drivebay.Secrets) (open, shut []steps.Step) {
	return []steps.Step{{Name: "open test layer",
			Done: func(context.Context) (bool, error) { return device.IsOpen(l) },
			Do:   func(ctx context.Context) error { _, err := l.Open(ctx, device.Opening{}); return err }}},
		[]steps.Step{l.closed()}
}

func (l *testLayer) closed() steps.Step {
	return steps.Step{Name: "close test layer",
		Done: func(context.Context) (bool, error) { is, err := device.IsOpen(l); return !is, err },
		Do:   l.Close}
}

func (l *testLayer) Erase(func(context.Context) (bool, error)) []steps.Step {
	return []steps.Step{l.closed()}
}
func (l *testLayer) EraseCopy(func(context.Context) (bool, error)) []steps.Step { return nil }
func (l *testLayer) Forget() error                                              { return nil }

// TestAnotherLayer puts a layer into the stack of encrypted volumes, below the encryption and above it: the
// calls for a volume reach it in the order of the layers, and none of them has to know it.
func TestAnotherLayer(t *testing.T) {
	t.Parallel()
	want := []map[string][]string{{
		"create":  {"open: below", "close: below"},
		"stage":   {"open: below", "grow to 1040 MiB: below plain"},
		"expand":  {"grow to 2064 MiB: below plain mounted"},
		"unstage": {"close: below"},
		"delete":  {"open: below", "close: below"}, // the header of the encryption is on it
	}, {
		"create":  {"open: below plain", "close: below plain"},
		"stage":   {"open: below plain", "grow to 1024 MiB: below plain"},
		"expand":  {"grow to 2048 MiB: below plain mounted"},
		"unstage": {"close: below plain"},
	}}
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		for at, want := range want {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				log := &layerLog{s: s, open: map[string]bool{}}
				s.e.InsertLayer(2*at, log.kind) // below all others, or above them
				v := s.make(name, encryptedRequests()[name])
				for _, call := range []struct {
					name string
					do   func() error
				}{
					{"create", func() error { return nil }},
					{"stage", func() error { return s.stage(v, with(rightKey)) }},
					{"expand", func() error {
						_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
						s.must(err)
						_, err = s.e.ExpandNode(s.Context(), v.ID, staging(v), drivebay.SizeRange{}, secrets(rightKey))
						return err
					}},
					{"unstage", func() error { return s.unstage(v) }},
					{"delete", func() error { return s.e.DeleteVolume(s.Context(), v.ID) }},
				} {
					if s.must(call.do()); !slices.Equal(log.calls, want[call.name]) {
						s.Errorf("%s, layer %d: %s: %q, want %q", name, at, call.name, log.calls, want[call.name])
					}
					log.calls = nil
				}
			})
		}
	}
}
