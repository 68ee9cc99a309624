// Package simclient asks the simulator of `drivebay serve --sim`.
package simclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// Ask sends a request to the simulator inside the daemon at an address; answer may be nil.
func Ask(ctx context.Context, address, method, what string, question, answer any) error {
	var transport http.Transport
	defer transport.CloseIdleConnections()
	base := address
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		base = "http://drivebay"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+"/sim/v1/"+what, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	resp, err := (&http.Client{Transport: &transport}).Do(req)
	if err != nil {
		return fmt.Errorf("simulator at %s: no answer: start a simulated machine with `drivebay serve --sim FILE`: %w", address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("simulator: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("daemon at %s: it manages a real machine: start a simulated one with `drivebay serve --sim FILE`", address)
	case resp.StatusCode != http.StatusOK:
		return refusal(text)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}

// refusal returns the error that the simulator, or the API server before it, sent.
func refusal(text []byte) error {
	var sim struct{ Error string }
	if json.Unmarshal(text, &sim) == nil && sim.Error != "" {
		return errors.New(sim.Error)
	}
	var edge struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &edge) == nil && edge.Error.Message != "" {
		return errors.New(edge.Error.Message)
	}
	return fmt.Errorf("simulator: %s", render.Clean(string(text)))
}
