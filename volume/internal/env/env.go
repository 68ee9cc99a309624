package env

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// Env is what every part of the engine needs. It does not change after New.
type Env struct {
	Machine host.Worker
	Drives  Drives
	Store   Store
	LVM     *lvm.System
	Opt     Options
	Log     *slog.Logger
	Ctx     context.Context // of Run; work ends with it
	Running *sync.WaitGroup // work that may have no caller any more
}

// Drives is what the engine needs from the drive manager.
type Drives interface {
	Snapshot() *drivebay.Snapshot
	// Wait returns the first snapshot newer than after.
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	// ProveIdentity proves that the block device with that number is the drive with that id, or a part
	// of it. The engine asks this of an open device, right before the first write.
	ProveIdentity(ctx context.Context, id, devnum string) error
	// Refresh lists the machine and reads all drives again.
	Refresh(ctx context.Context) error
	// Written reads a drive again after the engine has changed its table.
	Written(ctx context.Context, id string) error
	// AwaitReread waits until these drives were read, and reports whether there was one.
	AwaitReread(ctx context.Context) (bool, error)
	// Emptied reports that nothing depends on a drive any more that has to leave. Held reports
	// what the drive waits for.
	Emptied(ctx context.Context, id string) error
	Waiting(ctx context.Context, id, by string, p *drivebay.Progress) error
	// Operate does what an operator requests for a drive.
	Operate(ctx context.Context, id string, do drivebay.LeaveVerb, why string) error
	// LeaveFailed reports why a drive cannot leave.
	LeaveFailed(ctx context.Context, id, cause string) error
	// BlockUnclaim keeps the claim of a drive while why returns a reason.
	BlockUnclaim(why func(drive string) string)
	// BlockRemoval keeps a released drive while why returns a reason.
	BlockRemoval(why func(drive string) string)
	// NamedBy keeps the records of the missing drives that named returns, each with an owner, and shows a
	// drive that has none as OFFLINE. Named returns nil while the volumes are not known.
	NamedBy(named func() map[string]string)
	// Note records what happened to a volume.
	Note(e drivebay.Event)
}

// Store keeps the records on disk.
type Store interface {
	Volumes() (map[string]drivebay.VolumeRecord, error)
	PutVolume(drivebay.VolumeRecord) error
	DeleteVolume(id string) error
	VolumeSnapshots() (map[string]drivebay.SnapshotRecord, error)
	PutVolumeSnapshot(drivebay.SnapshotRecord) error
	DeleteVolumeSnapshot(id string) error
	Forgotten() (map[string]drivebay.ForgottenVolume, error)
	PutForgotten(drivebay.ForgottenVolume) error
	DeleteForgotten(key string) error
	Remains() (map[string]drivebay.Remains, error)
	PutRemains(drivebay.Remains) error
	DeleteRemains(partition string) error
}

// Options are the settings of an engine. Zero fields take the default.
type Options struct {
	Node  string   // name of this node
	Roots []string // folders below which volumes may be staged and published
	Tick  time.Duration
	// Heal makes the engine do the safe repairs by itself.
	Heal bool
	// Headers is the folder for copies of LUKS headers; empty: no copies are kept.
	Headers string
	Log     *slog.Logger
	// Throttle is how much of the time the kernel may copy data that moves, in percent; 0: the
	// kernel's setting.
	Throttle int
	// After is called with the name of each step that was done. An error ends the work as a
	// crash would. For tests.
	After func(volume, step string) error
	// CopyRate is how many bytes per second of a volume are copied off a leaving drive; 0: no
	// limit.
	CopyRate uint64
	// FSTypes are the filesystems that classes ask for; none: all supported ones.
	FSTypes []string
	// DRBD opens the DRBD of the kernel; nil: nothing can be replicated.
	DRBD func() (drbd.Kernel, error)
	// ReplicationSecret returns the shared secret with which replicated volumes connect after a restart of the machine; nil: they
	// wait for a call that has it.
	ReplicationSecret func() (string, error)
	// FullPercent is the usage from which a filesystem counts as full; 0: never.
	FullPercent int
}
