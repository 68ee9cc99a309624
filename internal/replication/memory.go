package replication

import (
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// Memory is what was seen of the kernel's DRBD. What has to outlive the daemon is in the records.
type Memory struct {
	mu      sync.Mutex
	refused map[uint32]drivebay.ReplicationConflict // by minor: what the kernel's log said since the last connection; empty: that it began
	past    map[string]Info                         // by volume
	alone   map[string]time.Time                    // by volume: since when its connection has ended without a conflict, or when it was begun again
	remote  map[string]bool                         // by volume: it works with the disk of its peer
}

// Works remembers whether a volume works with the disk of its peer.
func (s *Memory) Works(id string, remote bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remote == nil {
		s.remote = map[string]bool{}
	}
	s.remote[id] = remote
}

// IsRemote reports whether a volume worked with the disk of its peer when the kernel was asked last.
func (s *Memory) IsRemote(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remote[id]
}

// Hear remembers why the device of a minor refused its peer, or that the peer refused it, if nothing better is known.
func (s *Memory) Hear(minor uint32, why drivebay.ReplicationConflict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[uint32]drivebay.ReplicationConflict{}
	}
	if why == drivebay.RefusedByPeer && s.refused[minor] != "" {
		return
	}
	s.refused[minor] = why
}

// Conflict returns why a device refuses its peer, which the record or the kernel's log says. It ends with the next connection.
func (s *Memory) Conflict(st drbd.Status, recorded drivebay.ReplicationConflict) drivebay.ReplicationConflict {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard, ok := s.refused[st.Minor]
	switch {
	case st.State.Connection >= drbd.Connected:
		delete(s.refused, st.Minor)
		return ""
	case ok && (heard != drivebay.RefusedByPeer || recorded == ""):
		return heard
	}
	return recorded
}

// Look adds one more look at a volume to what is known of its past.
func (s *Memory) Look(v *drivebay.Volume, view View, now time.Time) drivebay.ReplicationPast {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past == nil {
		s.past = map[string]Info{}
	}
	was, known := s.past[v.ID]
	if !known {
		was.ReplicationPast = v.Replication.Past
	}
	is := was.Observe(view, now)
	s.past[v.ID] = is
	return is.ReplicationPast
}

// connectEvery is how long a connection that ended without a conflict stays so.
const connectEvery = time.Minute

// Stand remembers since when the kernel has stopped trying to connect a volume. It does so when a machine calls that does not know the secret.
func (s *Memory) Stand(id string, view View, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, known := s.alone[id]; {
	case view.State.Connection != drbd.StandAlone || view.Conflict != "" && view.Conflict != drivebay.RefusedByPeer: // which may be over
		delete(s.alone, id)
	case !known:
		if s.alone == nil {
			s.alone = map[string]time.Time{}
		}
		s.alone[id] = now
	}
}

// Due reports whether a volume is to be connected again.
func (s *Memory) Due(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.alone[id]
	return ok && now.Sub(since) >= connectEvery
}

// Tried lets a volume wait from now on.
func (s *Memory) Tried(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.alone[id]; ok {
		s.alone[id] = now
	}
}

// Forget ends what is known of a volume and its device: the minor may become another volume's.
func (s *Memory) Forget(v *drivebay.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, v.Replication.Minor)
	delete(s.past, v.ID)
	delete(s.alone, v.ID)
	delete(s.remote, v.ID)
}
