package watch

import (
	"maps"
	"sync"

	"github.com/drivebay/drivebay"
)

// Replications holds what the kernel said last of the replication of each volume. Package replicated writes it.
type Replications struct {
	mu sync.Mutex
	of map[string]drivebay.ReplicationInfo
}

// Of returns what is known of a volume; a zero value: nothing.
func (r *Replications) Of(id string) drivebay.ReplicationInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[id]
}

// now is Of for a volume that is replicated: before the kernel was asked nothing is known of it, which is no reason to show it as sound.
func (r *Replications) now(v *drivebay.Volume) drivebay.ReplicationInfo {
	if info := r.Of(v.ID); info != (drivebay.ReplicationInfo{}) {
		return info
	}
	return drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: v.Replication.Primary, State: "not known", Message: "the kernel's DRBD has not answered yet"}
}

// Put replaces what is known of one volume. What is known of all is replaced, not changed: Set compares it.
func (r *Replications) Put(id string, info drivebay.ReplicationInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.of)
	if all == nil {
		all = map[string]drivebay.ReplicationInfo{}
	}
	all[id] = info
	r.of = all
}

// Set replaces what is known of all volumes, and reports whether it is something else.
func (r *Replications) Set(all map[string]drivebay.ReplicationInfo) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = len(all) != len(r.of)
	for id, info := range all {
		news = news || r.of[id] != info
	}
	r.of = all
	return news
}
