package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/replication/parameters"
)

// Replication is the part of the volume engine that replicates volumes. Each call is idempotent.
type Replication interface {
	// Replicates returns why this machine replicates nothing, nil if it can.
	Replicates(ctx context.Context) error
	EnableReplication(ctx context.Context, r drivebay.ReplicationRequest) error
	DisableReplication(ctx context.Context, c drivebay.ReplicationCall) error
	PromoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	DemoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	ResyncVolume(ctx context.Context, c drivebay.ReplicationCall) (ready bool, err error)
	ReplicationInfo(ctx context.Context, id string) (drivebay.ReplicationInfo, error)
}

// SharedSecret authenticates the two sides of a replication. It is part of a request and of no answer;
// printing it shows only "(secret)".
type SharedSecret string

func (SharedSecret) String() string   { return "(secret)" }
func (SharedSecret) GoString() string { return "(secret)" }

func (s SharedSecret) check() error { return checkSecret("secret", string(s)) }

func (s SharedSecret) secrets() drivebay.Secrets {
	if s == "" {
		return nil
	}
	return drivebay.Secrets{drivebay.SecretReplication: string(s)}
}

// ReplicationBody requests the replication of a volume.
type ReplicationBody struct {
	Parameters map[string]string `json:"parameters,omitempty"` // as those of a VolumeReplicationClass
	Secret     SharedSecret      `json:"secret,omitempty"`     // shared secret of both sides; not stored
}

// ReplicationCallBody is the body of the other calls about the replication of a volume.
type ReplicationCallBody struct {
	Force  bool         `json:"force,omitempty"`  // of promote and resync
	Secret SharedSecret `json:"secret,omitempty"` // shared secret of both sides; not stored
}

// Resynced is the answer to a resync.
type Resynced struct {
	Ready bool `json:"ready"` // whether both sides have the same data
}

// ReplicatedVolume is how a volume is replicated, and how well.
type ReplicatedVolume struct {
	Volume        string         `json:"volume"`
	Name          string         `json:"name,omitempty"`
	Role          string         `json:"role"`               // primary or secondary
	Status        string         `json:"status"`             // healthy, degraded, error, or unknown
	State         string         `json:"state"`              // ready, degraded, resyncing, needs resync, split brain, ended, or unknown
	Message       string         `json:"message,omitempty"`  // why it is in that state
	Conflict      string         `json:"conflict,omitempty"` // why the kernel refuses the data of the peer: split brain, or unrelated data
	Connected     bool           `json:"connected"`
	Local         netip.AddrPort `json:"local"`                   // address and port of this side
	Peer          netip.AddrPort `json:"peer"`                    // address and port of the other side
	Protocol      string         `json:"protocol"`                // A or C
	Pair          string         `json:"pair,omitempty"`          // what both volumes are called together; empty: the ID of both
	MaxResyncRate uint32         `json:"maxResyncRate,omitempty"` // KiB/s; 0: the default of the kernel
	OutOfSync     uint64         `json:"outOfSync,omitempty"`     // bytes that differ from the peer, or may
	LastSync      time.Time      `json:"lastSync,omitzero"`       // when both sides were last known to have the same data
	ResyncBytes   uint64         `json:"resyncBytes,omitempty"`   // of the last resynchronization that came to its end
	ResyncSeconds float64        `json:"resyncSeconds,omitempty"` // how long that took
}

// ReplicationList holds the replicated volumes.
type ReplicationList struct {
	// Missing says why this machine cannot replicate volumes, and what to do about it; empty: it can.
	Missing string             `json:"missing,omitempty"`
	Volumes []ReplicatedVolume `json:"volumes"`
}

var replicationStatuses = map[drivebay.ReplicationStatus]string{
	drivebay.ReplicationHealthy: "healthy", drivebay.ReplicationDegraded: "degraded", drivebay.ReplicationError: "error",
}

// engineOfReplication returns what replicates volumes, or an error if the daemon has nothing that does.
func (s volumeHandlers) engineOfReplication() (Replication, error) {
	if s.opt.Replication == nil {
		return nil, fmt.Errorf("replication: %w by this daemon", drivebay.ErrNoSupport)
	}
	return s.opt.Replication, nil
}

// replicated returns how a volume is replicated. Why that is not known now is its message.
func (s volumeHandlers) replicated(ctx context.Context, v *drivebay.Volume) (ReplicatedVolume, error) {
	r := v.Replication
	if r == nil {
		return ReplicatedVolume{}, fmt.Errorf("volume %s: replication: %w: it is not enabled", v.ID, drivebay.ErrRefused)
	}
	out := ReplicatedVolume{Volume: v.ID, Name: v.Name, Role: "secondary", Status: "unknown", State: "unknown", Local: r.Local, Peer: r.Peer, Protocol: r.Protocol, Pair: r.Pair, MaxResyncRate: r.MaxResyncRate}
	switch {
	case r.Ended:
		out.Status, out.State, out.Message = "error", "ended", r.Why()
		return out, nil
	case r.Primary:
		out.Role = "primary"
	}
	engine, err := s.engineOfReplication()
	if err != nil {
		return out, err
	}
	info, err := engine.ReplicationInfo(ctx, v.ID)
	if err != nil {
		out.Message = err.Error()
		return out, nil
	}
	out.Status, out.State, out.Message, out.Conflict, out.Connected = replicationStatuses[info.Status], info.State, info.Message, string(info.Conflict), info.Connected
	out.OutOfSync, out.LastSync, out.ResyncBytes, out.ResyncSeconds = info.OutOfSync, info.LastSync, info.Bytes, info.Duration.Seconds()
	return out, nil
}

// replicatesTime limits the question what a machine supports, for a status that waits for nothing else.
const replicatesTime = time.Second

// unreplicated returns why the replicated volumes of the machine cannot be used; "" if they can, or none is.
func (s volumeHandlers) unreplicated(ctx context.Context) string {
	if s.opt.Replication == nil || s.opt.Volumes == nil || !slices.ContainsFunc(s.opt.Volumes.Volumes().Volumes, func(v *drivebay.VolumeView) bool { return v.Replicates() }) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, replicatesTime)
	defer cancel()
	if err := s.opt.Replication.Replicates(ctx); errors.Is(err, drivebay.ErrNoSupport) {
		return err.Error()
	}
	return ""
}

func (s volumeHandlers) replications(w http.ResponseWriter, r *http.Request) error {
	set, err := s.volumeSet()
	if err != nil {
		return err
	}
	engine, err := s.engineOfReplication()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	list := ReplicationList{Volumes: []ReplicatedVolume{}}
	if err := engine.Replicates(ctx); err != nil {
		list.Missing = err.Error()
	}
	for _, v := range set.Volumes {
		if v.Replication == nil {
			continue
		}
		one, err := s.replicated(ctx, &v.Volume)
		if err != nil {
			return err
		}
		list.Volumes = append(list.Volumes, one)
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (s volumeHandlers) replication(w http.ResponseWriter, r *http.Request) error {
	v, err := s.findVolume(r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	one, err := s.replicated(ctx, &v.Volume)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, one)
	return nil
}

// enableReplication requires the whole id or name, as the calls do that discard data: those of a target are
// replaced.
func (s volumeHandlers) enableReplication(w http.ResponseWriter, r *http.Request) error {
	return onReplication(s, w, r, true, func(ctx context.Context, engine Replication, id string, b ReplicationBody) (any, error) {
		request, err := parameters.Parse(b.Parameters)
		if err = errors.Join(err, b.Secret.check()); err != nil {
			return nil, err
		}
		request.Volume, request.Secrets = id, b.Secret.secrets()
		return nil, engine.EnableReplication(ctx, request)
	})
}

func (s volumeHandlers) disableReplication(w http.ResponseWriter, r *http.Request) error {
	return replicationCall(s, w, r, true, Replication.DisableReplication)
}

func (s volumeHandlers) promoteVolume(w http.ResponseWriter, r *http.Request) error {
	return replicationCall(s, w, r, true, Replication.PromoteVolume)
}

func (s volumeHandlers) demoteVolume(w http.ResponseWriter, r *http.Request) error {
	return replicationCall(s, w, r, false, Replication.DemoteVolume)
}

func (s volumeHandlers) resyncVolume(w http.ResponseWriter, r *http.Request) error {
	return onReplication(s, w, r, true, func(ctx context.Context, engine Replication, id string, b ReplicationCallBody) (any, error) {
		if err := b.Secret.check(); err != nil {
			return nil, err
		}
		ready, err := engine.ResyncVolume(ctx, drivebay.ReplicationCall{Volume: id, Force: b.Force, Secrets: b.Secret.secrets()})
		return Resynced{ready}, err
	})
}

func replicationCall(s volumeHandlers, w http.ResponseWriter, r *http.Request, whole bool, do func(Replication, context.Context, drivebay.ReplicationCall) error) error {
	return onReplication(s, w, r, whole, func(ctx context.Context, engine Replication, id string, b ReplicationCallBody) (any, error) {
		if err := b.Secret.check(); err != nil {
			return nil, err
		}
		return nil, do(engine, ctx, drivebay.ReplicationCall{Volume: id, Force: b.Force, Secrets: b.Secret.secrets()})
	})
}

// onReplication calls do with a volume. With whole, the start of an id does not name it.
func onReplication[B any](s volumeHandlers, w http.ResponseWriter, r *http.Request, whole bool, do func(context.Context, Replication, string, B) (any, error)) error {
	return work(s, w, r, func(ctx context.Context, _ Volumes, b B) (any, error) {
		engine, err := s.engineOfReplication()
		if err != nil {
			return nil, err
		}
		set, err := s.volumeSet()
		if err != nil {
			return nil, err
		}
		resolve := set.Resolve
		if whole {
			resolve = set.ResolveWhole
		}
		v, err := resolve(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return do(ctx, engine, v.ID, b)
	})
}

// ReplicationClient makes the calls about the replication of volumes.
type ReplicationClient struct{ *Client }

// List returns how the replicated volumes are replicated, and what the machine lacks for that.
func (c ReplicationClient) List(ctx context.Context) (ReplicationList, error) {
	return get[ReplicationList](ctx, c.Client, "/api/v1/replication", nil)
}

// Of returns how a volume is replicated.
func (c ReplicationClient) Of(ctx context.Context, what string) (ReplicatedVolume, error) {
	return get[ReplicatedVolume](ctx, c.Client, volumePath(what, "/replication"), nil)
}

// maySendSecret rejects a secret on a network connection, as maySend does.
func (c *connection) maySendSecret(s SharedSecret) error {
	if s != "" && !c.local() {
		return fmt.Errorf("%s: %w: a secret is sent to the daemon's unix socket only", c.url, drivebay.ErrRefused)
	}
	return s.check()
}

// Enable replicates a volume, by its whole id or name.
func (c ReplicationClient) Enable(ctx context.Context, what string, b ReplicationBody) error {
	if err := c.maySendSecret(b.Secret); err != nil {
		return err
	}
	return c.post(ctx, volumePath(what, "/replication/enable"), b)
}

// Disable gives the plain volume back, by its whole id or name.
func (c ReplicationClient) Disable(ctx context.Context, what string, b ReplicationCallBody) error {
	return c.call(ctx, what, "disable", b)
}

// Promote lets a volume be used on this side, by its whole id or name.
func (c ReplicationClient) Promote(ctx context.Context, what string, b ReplicationCallBody) error {
	return c.call(ctx, what, "promote", b)
}

// Demote lets the volume be used on the other side.
func (c ReplicationClient) Demote(ctx context.Context, what string, b ReplicationCallBody) error {
	return c.call(ctx, what, "demote", b)
}

// Resync reconnects a volume, by its whole id or name, and returns whether both sides have the same data.
func (c ReplicationClient) Resync(ctx context.Context, what string, b ReplicationCallBody) (bool, error) {
	if err := c.maySendSecret(b.Secret); err != nil {
		return false, err
	}
	answer, err := send[Resynced](ctx, c.Client, http.MethodPost, volumePath(what, "/replication/resync"), b)
	return answer.Ready, err
}

func (c ReplicationClient) call(ctx context.Context, what, verb string, b ReplicationCallBody) error {
	if err := c.maySendSecret(b.Secret); err != nil {
		return err
	}
	return c.post(ctx, volumePath(what, "/replication/"+verb), b)
}
