// Package ui serves the page: files of its own, the state of the machine as a stream, and the actions of an
// operator. It makes no text: what the page shows comes from the functions in Options.
//
// The handler is for the unix socket. Gate is what a browser needs before it.
package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// Engine is what the actions of the page call.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Locate(ctx context.Context, bay string, on bool) error
	Cordon(ctx context.Context, drive string, on bool) error
	Claim(ctx context.Context, drive string, on bool) error
	Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error
}

// Options are the parts of a page.
type Options struct {
	Engine Engine // nil: the page only reads
	// Version is a number that changes with the state of the machine, and State the state as the page shows
	// it. Neither may wait for a drive.
	Version func() uint64
	State   func() State
	// Drive returns what the page shows of one drive, nil if it is not known; a nil Drive: the state has all.
	Drive func(id string) any
	// Words puts the words of this page into encoded texts; nil: they are as they are shown.
	Words func([]byte) []byte
	// Stopping ends the streams.
	Stopping <-chan struct{}
}

// State is what a stream sends: the head with every change, and of the parts those that have changed.
type State struct {
	Head  any
	Parts []Part
}

// Part is a part of the state that is large together with all others, and rarely changes.
type Part struct {
	Key string
	Of  any
}

const (
	lookTime   = 500 * time.Millisecond // how often a stream looks for a new state
	aliveTime  = 10 * time.Second       // how often a stream without news says that it is alive
	streamTime = 30 * time.Second       // a browser that takes no bytes for so long is gone
	actionTime = time.Minute
	maxStreams = 32
)

// Page serves the page below /ui/.
type Page struct {
	opt     Options
	streams chan struct{}

	mu      sync.Mutex
	version uint64
	made    uint64 // how often the state was encoded
	head    []byte // of that version
	parts   []encoded
}

// encoded is a part as it is sent.
type encoded struct {
	key  string
	body []byte
	made uint64 // when it was last another one
}

// New returns the page.
func New(opt Options) *Page { return &Page{opt: opt, streams: make(chan struct{}, maxStreams)} }

// marshal encodes what the page shows.
func (p *Page) marshal(of any) ([]byte, error) {
	body, err := json.Marshal(of)
	if err == nil && p.opt.Words != nil {
		body = p.opt.Words(body)
	}
	return body, err
}

// ServeHTTP answers one request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch what := strings.TrimPrefix(r.URL.Path, "/ui/"); {
	case what == "state" && r.Method == http.MethodGet:
		p.stream(w, r)
	case what == "actions" && r.Method == http.MethodPost && p.opt.Engine == nil:
		refuse(w, http.StatusForbidden, "this page only reads: it shows the commands")
	case what == "actions" && r.Method == http.MethodPost:
		p.act(w, r)
	case strings.HasPrefix(what, "drives/") && r.Method == http.MethodGet:
		p.drive(w, r, strings.TrimPrefix(what, "drives/"))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		serveFile(w, r, what)
	default:
		refuse(w, http.StatusMethodNotAllowed, "this path is only read")
	}
}

// sent is the state that a stream has sent.
type sent struct{ version, made uint64 }

// state returns the encoded head, and the parts that have changed since what was sent. All streams share it.
func (p *Page) state(was sent) (now sent, head []byte, parts [][]byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if version := p.opt.Version(); version != p.version || p.head == nil {
		if err := p.encode(); err != nil {
			return was, nil, nil, err
		}
		p.version = version
	}
	for _, e := range p.parts {
		if e.made > was.made {
			parts = append(parts, e.body)
		}
	}
	return sent{p.version, p.made}, p.head, parts, nil
}

// encode encodes the state as it is now. The lock is held.
func (p *Page) encode() error {
	state := p.opt.State()
	head, err := p.marshal(state.Head)
	if err != nil {
		return err
	}
	was := make(map[string]encoded, len(p.parts))
	for _, e := range p.parts {
		was[e.key] = e
	}
	parts := make([]encoded, 0, len(state.Parts))
	for _, part := range state.Parts {
		e := encoded{key: part.Key, made: p.made + 1}
		if e.body, err = p.marshal(part.Of); err != nil {
			return err
		}
		if old, known := was[part.Key]; known && bytes.Equal(old.body, e.body) {
			e = old
		}
		parts = append(parts, e)
	}
	p.made, p.head, p.parts = p.made+1, head, parts
	return nil
}

// stream sends the state whenever it has changed, as server-sent events: the parts first, as events of that name.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	c := http.NewResponseController(w)
	send := func(text ...[]byte) error {
		_ = c.SetWriteDeadline(time.Now().Add(streamTime)) // not every ResponseWriter has deadlines
		for _, t := range text {
			if _, err := w.Write(t); err != nil {
				return err
			}
		}
		return nil
	}
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	var was sent
	last := time.Now()
	for first := true; ; first = false {
		var err error
		switch {
		case first || p.opt.Version() != was.version:
			var head []byte
			var parts [][]byte
			if was, head, parts, err = p.state(was); err != nil {
				return
			}
			for _, part := range parts {
				err = errors.Join(err, send([]byte("event: part\ndata: "), part, []byte("\n\n")))
			}
			err = errors.Join(err, send([]byte("data: "), head, []byte("\n\n")), c.Flush())
			last = time.Now()
		case time.Since(last) >= aliveTime:
			err, last = errors.Join(send([]byte(": alive\n\n")), c.Flush()), time.Now()
		}
		if err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.opt.Stopping:
			return
		}
	}
}

// drive answers with what the page shows of one drive.
func (p *Page) drive(w http.ResponseWriter, r *http.Request, id string) {
	var d any
	if p.opt.Drive != nil {
		d = p.opt.Drive(id)
	}
	if d == nil {
		refuse(w, http.StatusNotFound, "the drive is not known any more")
		return
	}
	body, err := p.marshal(d)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// Action is what an operator does about a drive. Bay and Serial are what the operator has confirmed.
type Action struct {
	Do     string `json:"do"` // locate, cordon, claim, or a verb of the removal
	On     bool   `json:"on,omitempty"`
	Drive  string `json:"drive"`
	Bay    string `json:"bay"`
	Serial string `json:"serial"`
}

// removals are the verbs that the page may call. What destroys data is left to the command line.
var removals = map[string]drivebay.LeaveVerb{
	"release": drivebay.LeaveRelease, "approve": drivebay.LeaveApprove, "cancel": drivebay.LeaveCancel,
	"retry": drivebay.LeaveRetry, "accept": drivebay.LeaveAccept,
}

// why is the reason that is stored with a removal.
const why = "an operator on the page"

func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	var a Action
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<10))
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body is not application/json")
		return
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err != nil || dec.Decode(&a) != nil {
		refuse(w, http.StatusBadRequest, "the request cannot be read")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTime)
	defer cancel()
	switch err := p.do(ctx, a); {
	case err == nil:
		secure(w.Header())
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, errChanged):
		refuse(w, http.StatusConflict, err.Error())
	default:
		refuse(w, http.StatusUnprocessableEntity, err.Error())
	}
}

var errChanged = errors.New("the drive that was confirmed is another one")

// do does what the operator has confirmed, if the drive is still the one that was confirmed.
func (p *Page) do(ctx context.Context, a Action) error {
	d, ok := p.opt.Engine.Snapshot().Get(a.Drive)
	if !ok {
		return fmt.Errorf("%w: drive %s is not known any more", errChanged, a.Drive)
	}
	if d.Slot.Bay != a.Bay || d.Serial != a.Serial {
		return fmt.Errorf("%w: drive %s is in bay %q and has the serial number %q", errChanged, d.ID, d.Slot.Bay, d.Serial)
	}
	verb, removal := removals[a.Do]
	switch {
	case a.Do == "locate" && d.Slot.Bay == "":
		return fmt.Errorf("drive %s: %w: it is in no bay", d.ID, drivebay.ErrNoSupport)
	case a.Do == "locate" && d.Slot.Enclosure != "":
		return p.opt.Engine.Locate(ctx, d.Slot.Enclosure+"/"+d.Slot.Bay, a.On)
	case a.Do == "locate":
		return p.opt.Engine.Locate(ctx, d.Slot.Bay, a.On)
	case a.Do == "cordon":
		return p.opt.Engine.Cordon(ctx, d.ID, a.On)
	case a.Do == "claim":
		return p.opt.Engine.Claim(ctx, d.ID, a.On)
	case removal:
		return p.opt.Engine.Operate(ctx, d.ID, verb, why)
	}
	return fmt.Errorf("%w: the page has no action %q", drivebay.ErrInvalid, a.Do)
}

// secure sets the headers of every answer. No code and no style inside the page, nothing from elsewhere, no
// frame around it, and no string ever becomes markup (Trusted Types).
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func refuse(w http.ResponseWriter, status int, text string) {
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": text}})
}

//go:embed web
var web embed.FS

// file is a file of the page, compressed.
type file struct {
	kind         string
	plain, small []byte
}

// kinds are the types of the files that are served. No other is.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// files reads and compresses the page with the first request for it.
var files = sync.OnceValue(func() map[string]file {
	out := map[string]file{}
	names, _ := fs.Glob(web, "web/*")
	for _, name := range names {
		plain, err := web.ReadFile(name)
		kind := kinds[path.Ext(name)]
		if err != nil || kind == "" {
			continue
		}
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
		_, _ = z.Write(plain)
		_ = z.Close()
		out[path.Base(name)] = file{kind, plain, small.Bytes()}
	}
	return out
})

// serveFile answers with a file of the page.
func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = "index.html"
	}
	f, ok := files()[name]
	if !ok {
		refuse(w, http.StatusNotFound, "the page has no such file")
		return
	}
	secure(w.Header())
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.small
		w.Header().Set("Content-Encoding", "gzip")
	}
	_, _ = w.Write(body)
}
