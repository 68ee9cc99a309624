package emul

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Client talks to an emulator. HTTP must reach the emulator's socket whatever the
// host name in the address.
type Client struct{ HTTP *http.Client }

// Devices lists the devices, by name.
func (c Client) Devices(ctx context.Context) ([]State, error) {
	var out []State
	return out, c.do(ctx, http.MethodGet, "/devices", nil, &out)
}

// Device is one of them.
func (c Client) Device(ctx context.Context, name string) (State, error) {
	var out State
	return out, c.do(ctx, http.MethodGet, "/devices/"+url.PathEscape(name), nil, &out)
}

// Change changes a device and returns how it is then.
func (c Client) Change(ctx context.Context, name string, change Change) (State, error) {
	var out State
	return out, c.do(ctx, http.MethodPatch, "/devices/"+url.PathEscape(name), change, &out)
}

// Unplug takes a device out without warning.
func (c Client) Unplug(ctx context.Context, name string) (State, error) {
	return c.verb(ctx, name, "unplug")
}

// Plug puts it in again; it keeps its data and may get another name in /dev.
func (c Client) Plug(ctx context.Context, name string) (State, error) {
	return c.verb(ctx, name, "plug")
}

// ResetCounts forgets the commands that a device got so far.
func (c Client) ResetCounts(ctx context.Context, name string) (State, error) {
	return c.verb(ctx, name, "reset-counters")
}

func (c Client) verb(ctx context.Context, name, verb string) (State, error) {
	var out State
	return out, c.do(ctx, http.MethodPost, "/devices/"+url.PathEscape(name)+"/"+verb, nil, &out)
}

func (c Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("emulator: %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://emulator"+path, body)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("emulator: %s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("emulator: %s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(b))
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("emulator: %s %s: %w", method, path, err)
	}
	return nil
}
