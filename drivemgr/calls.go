package drivemgr

import (
	"context"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/kernel"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/drivemgr/internal/records"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// Options holds the settings of a manager, SelfTestPlan the schedule of self-tests. Store keeps the
// records and events of the manager.
type (
	Options      = state.Options
	SelfTestPlan = policy.SelfTestPlan
	Store        = records.Store
)

// DefaultOptions returns the settings of a daemon without a configuration.
func DefaultOptions() Options { return state.DefaultOptions() }

// DefaultSelfTestPlan returns the plan of a daemon without a configuration.
func DefaultSelfTestPlan() SelfTestPlan { return policy.DefaultSelfTestPlan() }

// List lists the drives of a machine from sysfs. It opens none of them.
func List(files host.Files, mounts []host.Mount) []drivebay.Drive {
	return inventory.Observe(files, mounts, inventory.Options{}).Drives
}

// ReadKernel reads the counters of the kernel for a drive; prev is the previous result.
func ReadKernel(files host.Files, d *drivebay.Drive, prev *drivebay.Kernel, now time.Time) *drivebay.Kernel {
	return kernel.Read(files, d, prev, now)
}

// BlockUnclaim sets why: a drive keeps its claim while why returns a reason, for example a copy
// that cannot be stopped without another write.
func (m *Manager) BlockUnclaim(why func(drive string) string) {
	m.state.BlockUnclaim(why)
}

// Snapshot returns the newest state. It is never nil; Seq is 0 before the first listing.
func (m *Manager) Snapshot() *drivebay.Snapshot {
	return m.state.Snapshot()
}

// Wait returns the first snapshot with a Seq after the given one.
func (m *Manager) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	return m.state.Wait(ctx, after)
}

// Locate turns the light of a bay on or off, and reads it back.
func (m *Manager) Locate(ctx context.Context, bay string, on bool) error {
	return m.lights.Locate(ctx, bay, on)
}

// Claim claims a drive for volumes on behalf of an operator, or removes the claim. It writes
// nothing to the drive.
func (m *Manager) Claim(ctx context.Context, drive string, on bool) error {
	return m.claims.Claim(ctx, drive, on)
}

// SelfTest starts or aborts a self-test of a drive.
func (m *Manager) SelfTest(ctx context.Context, drive string, kind string) error {
	return m.selftests.SelfTest(ctx, drive, kind)
}

// Acknowledge accepts a drive's current finding: it counts again when it grows. Code ""
// accepts all findings that can be accepted.
func (m *Manager) Acknowledge(ctx context.Context, drive string, code string) error {
	return m.poll.Acknowledge(ctx, drive, code)
}

// AwaitReread waits until every drive named to Written has been read since, and reports
// whether there was one.
func (m *Manager) AwaitReread(ctx context.Context) (waited bool, err error) {
	return m.poll.AwaitReread(ctx)
}

// Cordon keeps new volumes off a drive, or allows them again.
func (m *Manager) Cordon(ctx context.Context, drive string, on bool) error {
	return m.poll.Cordon(ctx, drive, on)
}

// Pages reads all pages of a drive now and returns them undecoded.
func (m *Manager) Pages(ctx context.Context, drive string) ([]drivebay.RawPage, error) {
	return m.poll.Pages(ctx, drive)
}

// Written schedules a reading of a drive after drivebay wrote to it: the first or last partition
// of a table changes what the drive can be used for.
func (m *Manager) Written(ctx context.Context, drive string) error {
	return m.poll.Written(ctx, drive)
}

// Emptied records that nothing depends any more on a drive that is being released.
func (m *Manager) Emptied(ctx context.Context, drive string) error {
	return m.replacement.Emptied(ctx, drive)
}

// LeaveFailed records why a drive cannot be removed.
func (m *Manager) LeaveFailed(ctx context.Context, drive string, cause string) error {
	return m.replacement.LeaveFailed(ctx, drive, cause)
}

// Operate executes the command of an operator about a drive; why is the reason of the operator, or
// "".
func (m *Manager) Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	return m.replacement.Operate(ctx, drive, do, why)
}

// Waiting records what a drive that is being released waits for, and its progress.
func (m *Manager) Waiting(ctx context.Context, drive string, by string, p *drivebay.Progress) error {
	return m.replacement.Waiting(ctx, drive, by, p)
}

// NamedBy sets named, which returns the drives that the records of volumes name, with one owner of each, and nil while these
// records are not known. The record of such a drive stays while the drive is missing, and is made if it is lost.
func (m *Manager) NamedBy(named func() map[string]string) {
	m.tracking.NamedBy(named)
}

// BlockRemoval sets why: a drive that is RELEASED, or REMOVING since before a restart, is not removed while why returns a
// reason, such as a volume of which the record of the drive says nothing, because it is older.
func (m *Manager) BlockRemoval(why func(drive string) string) {
	m.state.BlockRemoval(why)
}

// Note adds an event of another part of the daemon, such as one about a volume.
func (m *Manager) Note(e drivebay.Event) {
	m.tracking.Note(e)
}

// ProveIdentity verifies that the block device of a number is the drive of an id, or a partition
// of it: the kernel now reports for that device what was listed under the id. The result
// remains valid while the caller has the device open, because the kernel does not reuse the number
// until then. ProveIdentity sends no request to a drive.
func (m *Manager) ProveIdentity(ctx context.Context, id string, devnum string) error {
	return m.tracking.ProveIdentity(ctx, id, devnum)
}

// Refresh lists the machine now, and schedules a reading of all drives with their content.
func (m *Manager) Refresh(ctx context.Context) error {
	return m.tracking.Refresh(ctx)
}
