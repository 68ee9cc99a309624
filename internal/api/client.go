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

// ErrNoDaemon: nobody listens at the address.
var ErrNoDaemon = errors.New("no daemon answers")

const (
	dialTime = 2 * time.Second
	pollTime = 30 * time.Second // of one long poll; the server allows more
)

// Client speaks to a daemon. Its methods are those of the engine; their errors
// unwrap to those of package drivebay.
type Client struct {
	url  string // as the user gave it
	base string
	http http.Client
	err  error // the url is no url
}

// Dial makes a client for unix:///path or http://host:port. It connects when it
// is first asked something.
func Dial(address string) *Client {
	c := &Client{url: address, base: strings.TrimSuffix(address, "/")}
	u, err := url.Parse(address)
	dialer := net.Dialer{Timeout: dialTime}
	transport := &http.Transport{DialContext: dialer.DialContext}
	switch {
	case err != nil:
		c.err = fmt.Errorf("address %q: %w: %w", address, drivebay.ErrInvalid, err)
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base = "http://drivebay"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", u.Path)
		}
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		c.err = fmt.Errorf("address %q: %w: want unix:///path or http://host:port", address, drivebay.ErrInvalid)
	}
	c.http.Transport = transport
	return c
}

// Close drops the connections that are kept for the next question.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Snapshot is everything, evidence included.
func (c *Client) Snapshot(ctx context.Context) (*drivebay.Snapshot, error) {
	return get[*drivebay.Snapshot](ctx, c, "/api/v1/snapshot", nil)
}

// Drives is the snapshot without the evidence.
func (c *Client) Drives(ctx context.Context) (*drivebay.Snapshot, error) {
	return get[*drivebay.Snapshot](ctx, c, "/api/v1/drives", nil)
}

// Wait is Drives once there is another snapshot than that with number after. A
// smaller number means that the daemon was started anew.
func (c *Client) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	for {
		s, err := get[*drivebay.Snapshot](ctx, c, "/api/v1/drives", polling(after))
		if err != nil || s.Seq != after {
			return s, err
		}
	}
}

// Drive is one drive with its evidence, by id, kernel name, serial or WWN.
func (c *Client) Drive(ctx context.Context, what string) (*drivebay.Drive, error) {
	return get[*drivebay.Drive](ctx, c, drivePath(what, ""), nil)
}

// Pages asks the drive now and brings its answers as they came.
func (c *Client) Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error) {
	return get[[]drivebay.RawPage](ctx, c, drivePath(drive, "/pages"), nil)
}

// SelfTest starts a short or long self-test, or aborts one.
func (c *Client) SelfTest(ctx context.Context, drive, kind string) error {
	return c.post(ctx, drivePath(drive, "/selftest"), selfTestBody{kind})
}

// Acknowledge accepts a finding; the code "" means all that can be.
func (c *Client) Acknowledge(ctx context.Context, drive, code string) error {
	return c.post(ctx, drivePath(drive, "/acknowledge"), acknowledgeBody{code})
}

// Cordon keeps a drive from getting new volumes, or lets it again.
func (c *Client) Cordon(ctx context.Context, drive string, on bool) error {
	return c.post(ctx, drivePath(drive, "/cordon"), switchBody{&on})
}

// Claim lets a drive be used for volumes, or no more.
func (c *Client) Claim(ctx context.Context, drive string, on bool) error {
	return c.post(ctx, drivePath(drive, "/claim"), switchBody{&on})
}

// Lead says that a drive has to leave, or what is next on its way.
func (c *Client) Lead(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	return c.post(ctx, drivePath(drive, "/leave"), leaveBody{do, why})
}

// Bays lists every place for a drive.
func (c *Client) Bays(ctx context.Context) ([]drivebay.Bay, error) {
	list, err := get[BayList](ctx, c, "/api/v1/bays", nil)
	return list.Bays, err
}

// Locate turns the light of a bay on or off.
func (c *Client) Locate(ctx context.Context, bay string, on bool) error {
	return c.post(ctx, "/api/v1/bays/"+url.PathEscape(bay)+"/locate", switchBody{&on})
}

// Events lists events newer than after, oldest first; limit 0 means all kept.
func (c *Client) Events(ctx context.Context, after uint64, limit int) ([]drivebay.Event, error) {
	if limit <= 0 {
		limit = maxEvents
	}
	q := url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(limit)}}
	list, err := get[EventList](ctx, c, "/api/v1/events", q)
	return list.Events, err
}

// WaitEvents is Events once there are any.
func (c *Client) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		list, err := get[EventList](ctx, c, "/api/v1/events", polling(after))
		if err != nil || len(list.Events) > 0 {
			return list.Events, err
		}
	}
}

// Refresh has the daemon look at everything now.
func (c *Client) Refresh(ctx context.Context) error {
	return c.post(ctx, "/api/v1/refresh", struct{}{})
}

// Status says whether the daemon is ready, and what it waits for.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/api/v1/status", nil)
}

// Version says which program answers.
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

func (c *Client) post(ctx context.Context, path string, body any) error {
	b, err := json.Marshal(body)
	if err == nil {
		_, err = c.do(ctx, http.MethodPost, path, b)
	}
	return err
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.url, err)
	}
	req.Header.Set("Content-Type", "application/json")
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

// refusal is the error that a server sent, as far as it is one of ours.
func (c *Client) refusal(status int, answer []byte) error {
	var body errorBody
	if json.Unmarshal(answer, &body) != nil || body.Error == nil || body.Error.Message == "" {
		return fmt.Errorf("%s: what answers there is no drivebay: HTTP status %d", c.url, status)
	}
	body.Error.Status = status
	return body.Error
}

// unreached says in plain words why there was no answer.
func (c *Client) unreached(ctx context.Context, err error) error {
	op, dialing := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", c.url, ctx.Err())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s is for its owner only: be that user (root, as a rule)", drivebay.ErrPermission, c.url)
	case dialing && op.Op == "dial":
		return fmt.Errorf("%w at %s: start it with `drivebay serve`, or use --local", ErrNoDaemon, c.url)
	}
	return fmt.Errorf("%s: %w", c.url, err)
}
