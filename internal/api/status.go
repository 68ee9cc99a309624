package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/drivebay/drivebay"
)

// Status is the state of the daemon.
type Status struct {
	Status  string   `json:"status"`            // ok or not ready
	Reasons []string `json:"reasons,omitempty"` // why the daemon is not ready
	// Unread names the drives that have not been read yet. Calls that depend on their volumes fail
	// with "unavailable".
	Unread []string `json:"unread,omitempty"`
	// Unwritten holds the ids of the volumes whose newest record is only in memory until the
	// record store is writable again.
	Unwritten []string `json:"unwritten,omitempty"`
	// Newer holds the ids of the volumes that the daemon found since its start on drives that the
	// record store lists without them: the record store is older than the drives.
	Newer []string `json:"newer,omitempty"`
	// Replication says why the replicated volumes of this machine cannot be used, and what to do about it.
	Replication string `json:"replication,omitempty"`
	// Config is the configuration in force, and what a reload found.
	Config *ConfigStatus `json:"config,omitempty"`
}

// ConfigStatus describes the configuration in force.
type ConfigStatus struct {
	File    string    `json:"file,omitempty"`    // the file that was read
	Loaded  time.Time `json:"loaded"`            // the time of the start, or of the last reload that was applied
	Changed []string  `json:"changed,omitempty"` // keys that the last reload changed
	Restart []string  `json:"restart,omitempty"` // keys that differ in the file and need a restart of the daemon
	Error   string    `json:"error,omitempty"`   // why the last reload was not applied
}

// Ready reports whether the daemon is ready.
func (s Status) Ready() bool { return len(s.Reasons) == 0 }

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, Status{Status: "ok"})
	return nil
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	st, code := s.status(), http.StatusOK
	if !st.Ready() {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, st)
	return nil
}

func (s *Server) showStatus(w http.ResponseWriter, r *http.Request) error {
	st := s.status()
	st.Replication = volumeHandlers{s}.unreplicated(r.Context())
	writeJSON(w, http.StatusOK, st)
	return nil
}

// status returns the state of the daemon. It accesses no drive.
func (s *Server) status() Status {
	st := Status{Status: "ok"}
	if s.engine.Snapshot().Seq == 0 {
		st.Reasons = append(st.Reasons, errStarting.Message)
	}
	if s.opt.Ready != nil {
		st.Reasons = append(st.Reasons, s.opt.Ready()...)
	}
	if s.opt.Volumes != nil {
		var ready bool
		st.Unwritten, st.Newer = s.opt.Volumes.Unwritten(), s.opt.Volumes.Newer()
		if st.Unread, ready = s.opt.Volumes.Unread(); !ready && s.engine.Snapshot().Seq > 0 {
			st.Reasons = append(st.Reasons, errUnread.Message)
		}
	}
	if s.opt.Config != nil {
		st.Config = s.opt.Config()
	}
	if !st.Ready() {
		st.Status = "not ready"
	}
	return st
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.opt.Metrics == nil {
		return fmt.Errorf("metrics: %w", drivebay.ErrNoSupport)
	}
	s.opt.Metrics.ServeHTTP(w, r)
	return nil
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	if s.opt.OpenAPI == nil {
		return fmt.Errorf("API description: %w", drivebay.ErrNoSupport)
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	_, _ = w.Write(s.opt.OpenAPI)
	return nil
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, s.opt.Version)
	return nil
}
