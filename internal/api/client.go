package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// ErrNoDaemon means that no daemon listens at the address.
var ErrNoDaemon = errors.New("no daemon answers")

const (
	dialTime = 2 * time.Second
	pollTime = 30 * time.Second // length of one long poll; the server allows more
)

// Client calls a daemon. Its methods are those of the engine; their errors unwrap to those of
// package drivebay.
type Client struct{ connection }

// connection is the way to a daemon.
type connection struct {
	url  string // the address given to Dial
	base string
	http http.Client
	err  error // set if the address is invalid

	tokenFile string // of the bearer token; "": none is sent
}

// unixBase is the URL of a daemon on a unix socket.
const unixBase = "http://drivebay"

// Dial returns a client for unix:///path or http://host:port. It connects with the first call.
func Dial(address string) *Client {
	c := &Client{connection{url: address, base: strings.TrimSuffix(address, "/")}}
	u, err := url.Parse(address)
	dialer := net.Dialer{Timeout: dialTime}
	transport := &http.Transport{DialContext: dialer.DialContext}
	switch {
	case err != nil:
		c.err = fmt.Errorf("address %q: %w: %w", address, drivebay.ErrInvalid, err)
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base = unixBase
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", u.Path)
		}
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		c.err = fmt.Errorf("address %q: %w: want unix:///path or http://host:port", address, drivebay.ErrInvalid)
	}
	c.http.Transport = transport
	return c
}

// Close closes idle connections.
func (c *connection) Close() { c.http.CloseIdleConnections() }

// Snapshot returns the snapshot with the evidence of all drives.
func (c *Client) Snapshot(ctx context.Context) (*drivebay.Snapshot, error) {
	return get[*drivebay.Snapshot](ctx, c, "/api/v1/snapshot", nil)
}

// Drives returns the snapshot without the evidence.
func (c *Client) Drives(ctx context.Context) (*drivebay.Snapshot, error) {
	return get[*drivebay.Snapshot](ctx, c, "/api/v1/drives", nil)
}

// Wait returns Drives once the number of the snapshot differs from after. A smaller number means
// that the daemon was restarted.
func (c *Client) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	for {
		s, err := get[*drivebay.Snapshot](ctx, c, "/api/v1/drives", polling(after))
		if err != nil || s.Seq != after {
			return s, err
		}
	}
}

// Drive returns one drive with its evidence, by id, kernel name, serial or WWN.
func (c *Client) Drive(ctx context.Context, what string) (*drivebay.Drive, error) {
	return get[*drivebay.Drive](ctx, c, drivePath(what, ""), nil)
}

// Pages reads the health pages of the drive now and returns them undecoded.
func (c *Client) Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error) {
	return get[[]drivebay.RawPage](ctx, c, drivePath(drive, "/pages"), nil)
}

// SelfTest starts a short or long self-test, or aborts one.
func (c *Client) SelfTest(ctx context.Context, drive, kind string) error {
	return c.post(ctx, drivePath(drive, "/selftest"), selfTestBody{kind})
}

// Acknowledge accepts a finding; code "" accepts all findings that can be accepted.
func (c *Client) Acknowledge(ctx context.Context, drive, code string) error {
	return c.post(ctx, drivePath(drive, "/acknowledge"), acknowledgeBody{code})
}

// Cordon excludes a drive from new volumes, or admits it again.
func (c *Client) Cordon(ctx context.Context, drive string, on bool) error {
	return c.post(ctx, drivePath(drive, "/cordon"), switchBody{&on})
}

// Claim allows the use of a drive for volumes, or ends it.
func (c *Client) Claim(ctx context.Context, drive string, on bool) error {
	return c.post(ctx, drivePath(drive, "/claim"), switchBody{&on})
}

// Operate sends an operator's command about the removal of a drive.
func (c *Client) Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	return c.post(ctx, drivePath(drive, "/leave"), leaveBody{do, why})
}

// Bays returns every place for a drive.
func (c *Client) Bays(ctx context.Context) ([]drivebay.Bay, error) {
	list, err := get[BayList](ctx, c, "/api/v1/bays", nil)
	return list.Bays, err
}

// Locate turns the light of a bay on or off.
func (c *Client) Locate(ctx context.Context, bay string, on bool) error {
	return c.post(ctx, "/api/v1/bays/"+url.PathEscape(bay)+"/locate", switchBody{&on})
}

// Events returns events newer than after, oldest first; limit 0 means all that are kept.
func (c *Client) Events(ctx context.Context, after uint64, limit int) ([]drivebay.Event, error) {
	if limit <= 0 {
		limit = maxEvents
	}
	q := url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(limit)}}
	list, err := get[EventList](ctx, c, "/api/v1/events", q)
	return list.Events, err
}

// WaitEvents returns Events once there is at least one.
func (c *Client) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		list, err := get[EventList](ctx, c, "/api/v1/events", polling(after))
		if err != nil || len(list.Events) > 0 {
			return list.Events, err
		}
	}
}

// Refresh makes the daemon list the machine and read all drives now.
func (c *Client) Refresh(ctx context.Context) error {
	return c.post(ctx, "/api/v1/refresh", struct{}{})
}

// Status returns whether the daemon is ready, and why not.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/api/v1/status", nil)
}

// Version returns the version of the daemon.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/api/v1/version", nil)
}

func polling(after uint64) url.Values {
	return url.Values{"after": {strconv.FormatUint(after, 10)}, "wait": {pollTime.String()}}
}

func drivePath(what, rest string) string { return "/api/v1/drives/" + url.PathEscape(what) + rest }

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return out, err
	}
	return decode[T](c, body)
}

func decode[T any](c *Client, answer []byte) (out T, err error) {
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("%s: what answers there is no drivebay of this version: %w", c.url, err)
	}
	return out, nil
}

func (c *connection) post(ctx context.Context, path string, body any) error {
	b, err := json.Marshal(body)
	if err == nil {
		_, err = c.do(ctx, http.MethodPost, path, b)
	}
	return err
}

func (c *connection) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.url, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := c.authorize(req); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: the answer broke off: %w", c.url, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, c.refusal(resp.StatusCode, answer)
	}
	return answer, nil
}

// refusal returns the error in the answer, or a general one if the answer has another form.
func (c *connection) refusal(status int, answer []byte) error {
	var body errorBody
	if json.Unmarshal(answer, &body) != nil || body.Error == nil || body.Error.Message == "" {
		return fmt.Errorf("%s: what answers there is no drivebay: HTTP status %d", c.url, status)
	}
	body.Error.Status = status
	return body.Error
}

// unreached returns the error of a call without an answer, in plain words.
func (c *connection) unreached(ctx context.Context, err error) error {
	op, dialing := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", c.url, ctx.Err())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s: %s", drivebay.ErrPermission, c.url, denied(strings.TrimPrefix(c.url, "unix://")))
	case dialing && op.Op == "dial":
		return fmt.Errorf("%w at %s: start it with `drivebay serve`, or use --local", ErrNoDaemon, c.url)
	}
	return fmt.Errorf("%s: %w", c.url, err)
}
