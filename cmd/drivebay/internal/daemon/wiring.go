package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"

	apidoc "github.com/drivebay/drivebay/docs/api"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/history"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/metrics"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// Simulated is a simulated machine.
type Simulated interface {
	host.Machine
	Claim() string         // selectors of the drives that may be used for volumes
	Handler() http.Handler // injects faults into the drives
	DRBD() (drbd.Kernel, error)
}

// open opens the machine. For a simulated one it returns the handler that injects faults
// into its drives.
func (d *daemon) open() (sim http.Handler, err error) {
	if d.config.Sim == "" {
		d.machine, err = host.Real(d.config.Root)
		return nil, err
	}
	machine, err := d.opt.Simulate(d.config.Sim)
	if err != nil {
		return nil, err
	}
	d.machine = machine
	if err := d.simClaim.UnmarshalText([]byte(machine.Claim())); err != nil {
		return nil, fmt.Errorf("%s: claim: %w", d.config.Sim, err)
	}
	return machine.Handler(), nil
}

// makeVolumes returns the volume engine, or nil on a machine whose drives cannot be
// written to.
func (d *daemon) makeVolumes(st volume.Store) (*volume.Engine, error) {
	worker, ok := d.machine.(host.Worker)
	if !ok {
		return nil, nil
	}
	system := lvm.New(worker, filepath.Join(d.config.StateDir, "lvm"))
	return volume.New(worker, d.engine, st, system, volume.Options{
		Node: d.node(), Roots: d.config.VolumeRoots, Tick: d.config.Poll.Tick, Log: d.log,
		Throttle: d.config.Replacement.Throttle,
		Headers:  filepath.Join(d.config.StateDir, "luks"), Heal: d.config.Healing.Policy == "safe",
		CopyRate: d.config.Replacement.CopyRate, FullPercent: d.config.Volumes.FullPercent, FSTypes: d.config.Volumes.Filesystems,
		DRBD: d.drbd(), ReplicationSecret: secretOf(d.config.Replication.SecretFile),
	})
}

// node returns the name by which callers know this machine. It is in lower case, as
// names of nodes are in Kubernetes, whatever the host name is.
func (d *daemon) node() string {
	return strings.ToLower(cmp.Or(d.config.NodeID, d.machine.Describe().Name))
}

// edge returns the server of the API, the metrics and the simulator.
func (d *daemon) edge(ctx context.Context, sim http.Handler, recorder *history.Recorder) *api.Server {
	opt := api.Options{
		Version: api.Version{Version: d.opt.Version, Commit: d.opt.Commit, Go: runtime.Version(), Started: d.machine.Now()},
		Metrics: metrics.Handler(d.engine, nil, d.counted(), d.opt.Version, d.opt.Commit),
		Trial:   d.trial(),
		History: recorder.Of,
		OpenAPI: apidoc.OpenAPI,
		Ready:   d.engine.Unready,
		Config:  d.report.Load,
		Log:     d.log,
	}
	if d.volumes != nil {
		opt.Volumes, opt.Replication, opt.Metrics = d.volumes, d.replicas, metrics.Handler(d.engine, d.volumes, d.counted(), d.opt.Version, d.opt.Commit)
	}
	server := api.New(d.engine, opt)
	server.MountLocal("/ui/", d.newPage(ctx, opt.Version.Started))
	if sim != nil {
		server.Mount("/sim/", sim)
	}
	return server
}

// listen opens the unix socket, and the TCP address if one is configured.
func (d *daemon) listen(ctx context.Context) ([]api.Listener, error) {
	unix, err := api.ListenUnix(config.SocketPath(d.config.API))
	if err != nil {
		return nil, fmt.Errorf("%w: choose another socket with --api unix:///path", err)
	}
	if group := d.config.SocketGroup; group != "" {
		if unix, err = unix.Share(group); err != nil {
			d.log.Error("the socket is for root only: create the group or correct socketGroup, then restart", "op", "listen", "err", err)
		}
	}
	if d.config.Listen == "" {
		return []api.Listener{unix}, nil
	}
	access, err := d.access()
	var tcp api.Listener
	if err == nil {
		tcp, err = api.ListenTCP(ctx, d.config.Listen, access)
	}
	if err != nil {
		unix.Close()
		return nil, err
	}
	d.tcp = tcp.Addr().String()
	return []api.Listener{unix, tcp}, nil
}
