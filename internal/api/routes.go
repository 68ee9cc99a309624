package api

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
)

// handler answers one request or returns an error.
type handler func(*Server, http.ResponseWriter, *http.Request) error

// aboutDrives and aboutVolumes return the handler that calls one of theirs.
func aboutDrives(serve func(driveHandlers, http.ResponseWriter, *http.Request) error) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error { return serve(driveHandlers{s}, w, r) }
}

func aboutVolumes(serve func(volumeHandlers, http.ResponseWriter, *http.Request) error) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error { return serve(volumeHandlers{s}, w, r) }
}

// route is one method of one path. A privileged route changes something or makes a drive work:
// only the unix socket serves it.
type route struct {
	method, path string
	privileged   bool
	serve        handler
}

var routes = []route{
	{"GET", "/healthz", false, (*Server).alive},
	{"GET", "/readyz", false, (*Server).ready},
	{"GET", "/metrics", false, (*Server).metrics},
	{"GET", "/api/v1/version", false, (*Server).version},
	{"GET", "/api/v1/status", false, (*Server).showStatus},
	{"GET", "/api/v1/openapi.yaml", false, (*Server).openapi},
	{"GET", "/api/v1/snapshot", false, aboutDrives(driveHandlers.snapshot)},
	{"GET", "/api/v1/drives", false, aboutDrives(driveHandlers.drives)},
	{"GET", "/api/v1/drives/{id}", false, aboutDrives(driveHandlers.drive)},
	{"GET", "/api/v1/drives/{id}/history", false, aboutDrives(driveHandlers.history)},
	{"GET", "/api/v1/drives/{id}/pages", true, aboutDrives(driveHandlers.pages)},
	{"POST", "/api/v1/drives/{id}/selftest", true, aboutDrives(driveHandlers.selfTest)},
	{"POST", "/api/v1/drives/{id}/acknowledge", true, aboutDrives(driveHandlers.acknowledge)},
	{"POST", "/api/v1/drives/{id}/cordon", true, aboutDrives(driveHandlers.cordon)},
	{"POST", "/api/v1/drives/{id}/claim", true, aboutDrives(driveHandlers.claim)},
	{"POST", "/api/v1/drives/{id}/leave", true, aboutDrives(driveHandlers.leave)},
	{"GET", "/api/v1/bays", false, aboutDrives(driveHandlers.bays)},
	{"POST", "/api/v1/bays/{bay}/locate", true, aboutDrives(driveHandlers.locate)},
	{"GET", "/api/v1/volumes", false, aboutVolumes(volumeHandlers.volumes)},
	{"POST", "/api/v1/volumes", true, aboutVolumes(volumeHandlers.createVolume)},
	{"GET", "/api/v1/volumes/{id}", false, aboutVolumes(volumeHandlers.volume)},
	{"DELETE", "/api/v1/volumes/{id}", true, aboutVolumes(volumeHandlers.deleteVolume)},
	{"POST", "/api/v1/volumes/{id}/expand", true, aboutVolumes(volumeHandlers.expandVolume)},
	{"GET", "/api/v1/volumes/{id}/room", false, aboutVolumes(volumeHandlers.room)},
	{"POST", "/api/v1/volumes/{id}/scrub", true, aboutVolumes(volumeHandlers.scrubVolume)},
	{"POST", "/api/v1/volumes/{id}/heal", true, aboutVolumes(volumeHandlers.healVolume)},
	{"POST", "/api/v1/volumes/{id}/retry", true, aboutVolumes(volumeHandlers.retryVolume)},
	{"POST", "/api/v1/volumes/{id}/clear", true, aboutVolumes(volumeHandlers.clearVolume)},
	{"POST", "/api/v1/volumes/{id}/move-before-use", true, aboutVolumes(volumeHandlers.moveBeforeUse)},
	{"POST", "/api/v1/volumes/{id}/release", true, aboutVolumes(volumeHandlers.releaseVolume)},
	{"POST", "/api/v1/volumes/{id}/accept-loss", true, aboutVolumes(volumeHandlers.acceptLoss)},
	{"POST", "/api/v1/volumes/{id}/forget", true, aboutVolumes(volumeHandlers.forgetVolume)},
	{"POST", "/api/v1/volumes/{id}/adopt", true, aboutVolumes(volumeHandlers.adoptVolume)},
	{"POST", "/api/v1/volumes/{id}/snapshots", true, aboutVolumes(volumeHandlers.createSnapshot)},
	{"GET", "/api/v1/replication", true, aboutVolumes(volumeHandlers.replications)},
	{"GET", "/api/v1/volumes/{id}/replication", true, aboutVolumes(volumeHandlers.replication)},
	{"POST", "/api/v1/volumes/{id}/replication/enable", true, aboutVolumes(volumeHandlers.enableReplication)},
	{"POST", "/api/v1/volumes/{id}/replication/disable", true, aboutVolumes(volumeHandlers.disableReplication)},
	{"POST", "/api/v1/volumes/{id}/replication/promote", true, aboutVolumes(volumeHandlers.promoteVolume)},
	{"POST", "/api/v1/volumes/{id}/replication/demote", true, aboutVolumes(volumeHandlers.demoteVolume)},
	{"POST", "/api/v1/volumes/{id}/replication/resync", true, aboutVolumes(volumeHandlers.resyncVolume)},
	{"GET", "/api/v1/snapshots", false, aboutVolumes(volumeHandlers.snapshots)},
	{"DELETE", "/api/v1/snapshots/{id}", true, aboutVolumes(volumeHandlers.deleteSnapshot)},
	{"POST", "/api/v1/snapshots/{id}/forget", true, aboutVolumes(volumeHandlers.forgetSnapshot)},
	{"GET", "/api/v1/capacity", false, aboutVolumes(volumeHandlers.capacity)},
	{"GET", "/api/v1/events", false, (*Server).events},
	{"POST", "/api/v1/notify/trial", true, (*Server).trial},
	{"POST", "/api/v1/refresh", true, aboutDrives(driveHandlers.refresh)},
}

// Handler returns the handler of all routes and mounted handlers.
func (s *Server) Handler(readOnly bool) http.Handler {
	if readOnly {
		return s.restricted(errReadOnly)
	}
	return s.restricted(nil)
}

// restricted returns the handler that answers privileged routes with an error, unless it is nil.
func (s *Server) restricted(refusal *Error) http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range routes {
		allowed[r.path] = append(allowed[r.path], r.method)
		serve := r.serve
		if refusal != nil && r.privileged {
			serve = refuse(refusal)
		}
		mux.Handle(r.method+" "+r.path, s.answer(serve))
	}
	for path, methods := range allowed {
		mux.Handle(path, s.answer(wrongMethod(methods)))
	}
	for pattern, h := range s.mounts {
		if s.local[pattern] && refusal == errReadOnly {
			mux.Handle(pattern, s.answer(refuse(refusal)))
			continue
		}
		mux.Handle(pattern, s.answer(mounted(h, refusal)))
	}
	if _, taken := s.mounts["/"]; !taken {
		mux.Handle("/", s.answer(unknownPath))
	}
	return mux
}

// answer runs a handler and turns its error, or its panic, into the answer to this request.
func (s *Server) answer(serve handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := s.opt.Log.With("op", r.Method+" "+r.URL.Path)
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			writeError(w, http.StatusInternalServerError, "internal", "internal error: see the daemon's log")
		}()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		err := receiveBody(w, r)
		if err == nil {
			err = s.onceListed(serve, w, r)
		}
		switch {
		case r.Context().Err() != nil:
			log.Debug("caller is gone", "error", err)
		case err != nil:
			status, code := codeOf(err)
			log.Debug("refused", "status", status, "error", err)
			if status == http.StatusInternalServerError {
				log.Error("failed", "error", err)
			}
			writeError(w, status, code, err.Error())
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			log.Info("done")
		}
	})
}

// onceListed runs a handler. A request that reads just after the start of the daemon waits for the
// first listing, at most listTime: an empty list would read as a machine without drives.
func (s *Server) onceListed(serve handler, w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := s.patience(r, listTime)
	defer cancel()
	for {
		seen := s.engine.Snapshot().Seq // read before serve, so that no change in between is missed
		err := serve(s, w, r)
		if r.Method != http.MethodGet || !errors.Is(err, errStarting) {
			return err
		}
		if _, waited := s.engine.Wait(ctx, seen); waited != nil {
			return err
		}
	}
}

func refuse(refusal *Error) handler {
	return func(*Server, http.ResponseWriter, *http.Request) error { return refusal }
}

func unknownPath(_ *Server, _ http.ResponseWriter, r *http.Request) error {
	return failf(http.StatusNotFound, "not_found", "nothing is served at %s", r.URL.Path)
}

func wrongMethod(methods []string) handler {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	allow := strings.Join(methods, ", ")
	return func(_ *Server, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return failf(http.StatusMethodNotAllowed, "method_not_allowed", "%s is served for %s, not for %s", r.URL.Path, allow, r.Method)
	}
}

// mounted restricts a mounted handler to GET and HEAD where privileged routes are refused.
func mounted(h http.Handler, refusal *Error) handler {
	reading := map[string]bool{http.MethodGet: true, http.MethodHead: true}
	return func(_ *Server, w http.ResponseWriter, r *http.Request) error {
		if refusal != nil && !reading[r.Method] {
			return refusal
		}
		h.ServeHTTP(w, r)
		return nil
	}
}
