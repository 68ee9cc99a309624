package main

import (
	"slices"
	"testing"

	"github.com/drivebay/drivebay/internal/config"
)

// TestEndpoints: sockets are found under every name that CSI has for them.
func TestEndpoints(t *testing.T) {
	for _, text := range []string{"unix:///run/csi.sock", "unix:/run/csi.sock", "/run/csi.sock"} {
		loaded, err := config.Load(config.Sources{Env: csiEndpoint([]string{"CSI_ENDPOINT=" + text})})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := config.SocketPath(loaded.CSIEndpoint); got != "/run/csi.sock" {
			t.Errorf("%s: %q", text, got)
		}
	}
	for _, text := range []string{"run/csi.sock", "unix:csi.sock", "tcp://127.0.0.1:1"} {
		if config.SocketPath(text) != "" {
			t.Errorf("%s: taken for a socket", text)
		}
	}
	both := []string{"CSI_ENDPOINT=/a", "DRIVEBAY_CSI_ENDPOINT=/b"}
	if got := csiEndpoint(both); !slices.Equal(got, both) {
		t.Errorf("with a variable of our own: %q", got)
	}
}
