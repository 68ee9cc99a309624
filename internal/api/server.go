// Package api is the HTTP API: the engine's snapshot and operations as JSON, and a client
// with the same methods.
//
// Reading never accesses a drive: it answers from the last snapshot, whatever the drives
// are doing. Calls that change something, or make a drive work, are privileged and served
// on the unix socket only.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// Engine is the part of the drive manager that the API needs.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	Events(after uint64, limit int) []drivebay.Event
	WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error)
	Refresh(ctx context.Context) error
	Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error)
	SelfTest(ctx context.Context, drive, kind string) error
	Locate(ctx context.Context, bay string, on bool) error
	Acknowledge(ctx context.Context, drive, code string) error
	Cordon(ctx context.Context, drive string, on bool) error
	Claim(ctx context.Context, drive string, on bool) error
	// Operate carries out an operator's command about the removal of a drive.
	Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error
}

// Version is the version of the daemon.
type Version struct {
	Version string    `json:"version"`
	Commit  string    `json:"commit,omitempty"`
	Go      string    `json:"go,omitempty"`
	Started time.Time `json:"started,omitzero"`
}

// Options holds the optional parts of the API.
type Options struct {
	Version Version
	Volumes Volumes // nil: the daemon has no volume engine
	// Replication replicates the volumes; nil: the daemon replicates none.
	Replication Replication
	Metrics     http.Handler // GET /metrics
	OpenAPI     []byte       // GET /api/v1/openapi.yaml
	// History returns what was measured of a drive in the last 90 days; nil: it is not kept.
	History func(drive string) ([]drivebay.HistoryPoint, error)
	// Trial sends a trial notice to every sink; nil: none is configured.
	Trial  func(ctx context.Context) []TrialResult
	Ready  func() []string // more reasons why the daemon is not ready; empty: none
	Config func() *ConfigStatus
	Log    *slog.Logger
}

const (
	maxBody    = 64 << 10
	maxWait    = time.Minute      // longest wait of a long poll
	listTime   = 10 * time.Second // longest wait for the first listing
	opTimeout  = time.Minute      // of a call that accesses a drive
	bodyTime   = 10 * time.Second // to receive a body
	writeTime  = 2 * time.Minute  // to send an answer, including the wait
	stopTime   = 5 * time.Second  // for running requests when the daemon stops
	maxEvents  = 10_000
	fewEvents  = 1000 // default limit of events
	headerTime = 5 * time.Second
)

// Server serves the API of one engine.
type Server struct {
	engine Engine
	opt    Options
	mounts map[string]http.Handler
	local  map[string]bool // the mounted patterns that no TCP address serves

	stopping context.Context // ends the long polls when the daemon stops
	stop     context.CancelFunc

	mu    sync.Mutex
	cache map[string]encoded // by name of the view
}

type encoded struct {
	of   any
	body []byte
}

// New returns a server that does not listen yet.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt, mounts: map[string]http.Handler{}, local: map[string]bool{}, cache: map[string]encoded{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Mount adds a handler under a pattern of net/http ("/sim/"), before Serve. On a read-only address
// the handler gets GET and HEAD requests only.
func (s *Server) Mount(pattern string, h http.Handler) { s.mounts[pattern] = h }

// MountLocal adds a handler that only the unix socket serves.
func (s *Server) MountLocal(pattern string, h http.Handler) {
	s.Mount(pattern, h)
	s.local[pattern] = true
}

// Serve answers on all listeners until ctx ends or one of them fails. It then waits for running
// requests and closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...Listener) error {
	failed := make(chan error, len(listeners))
	var servers []*http.Server
	for _, l := range listeners {
		srv := &http.Server{
			Handler:           s.guard(l.Access, s.handlerOf(l)),
			ConnContext:       withPeer,
			ReadHeaderTimeout: headerTime,
			WriteTimeout:      writeTime,
			IdleTimeout:       writeTime,
			MaxHeaderBytes:    maxBody,
			ErrorLog:          slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelDebug),
		}
		servers = append(servers, srv)
		go func() { failed <- srv.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(grace) != nil {
			err = errors.Join(err, srv.Close())
		}
	}
	return err
}
