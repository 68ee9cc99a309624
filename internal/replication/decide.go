package replication

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// Verb is an RPC of replication.Controller.
type Verb int

// The verbs.
const (
	Enable Verb = iota
	Disable
	Promote
	Demote
	Resync
)

// Call is an RPC with what it finds.
type Call struct {
	Verb     Verb
	VolumeID string
	// Group means that the source is a group of volumes.
	Group bool
	Force bool
	// Exists: the volume exists. Pending: another call for it is under way.
	Exists, Pending bool
	// Secret: the call has the secrets that it needs.
	Secret bool
	// HoldsData: by the record of this side, the volume had its data here when it was enabled, or was primary here
	// since. The metadata do not say that before they are in use.
	HoldsData bool
	// View is nil while the volume is not replicated.
	View *View
}

// Plan is what an allowed call has to do.
type Plan int

// The plans.
const (
	// Nothing: the volume is in the wanted state.
	Nothing Plan = iota
	// SetUp: this side has no data of the volume, and waits for a copy.
	SetUp
	// SetUpWithData: this side gets a generation of its own, as primary by force, before its first connection: else
	// the first peer with a generation would replace its data (drbd_uuid_compare, rule 20).
	SetUpWithData
	TakeDown
	BecomePrimary
	// BecomePrimaryByForce: the operator declares the local data to be the current ones.
	BecomePrimaryByForce
	BecomeSecondary
	// Wait: a resync runs, or starts once the peer answers.
	Wait
	// Reconnect: DRBD finds the direction out by itself, or refuses the peer.
	Reconnect
	// DiscardLocal: reconnect, and give the local data up. DRBD does so only if it finds a split brain again.
	DiscardLocal
)

// Decide follows the error tables of the contract (CSI-Addons spec, replication): ErrInvalid is INVALID_ARGUMENT,
// ErrNotFound NOT_FOUND, ErrPending ABORTED, ErrNoSupport UNIMPLEMENTED, ErrSecret UNAUTHENTICATED, ErrRefused
// FAILED_PRECONDITION. Each verb is idempotent.
func Decide(c Call) (Plan, error) {
	if err := c.check(); err != nil {
		return Nothing, err
	}
	switch c.Verb {
	case Enable:
		if c.View != nil {
			return Nothing, nil
		}
		if c.HoldsData {
			return SetUpWithData, nil
		}
		return SetUp, nil
	case Disable:
		if c.View == nil {
			return Nothing, nil
		}
		return TakeDown, nil
	}
	if c.View == nil {
		return Nothing, c.refuse("replication is not enabled")
	}
	switch c.Verb {
	case Promote:
		return c.promote()
	case Demote:
		if c.View.State.Role != drbd.RolePrimary {
			return Nothing, nil
		}
		return BecomeSecondary, nil
	case Resync:
		return c.resync()
	}
	return Nothing, fmt.Errorf("verb %d: %w", c.Verb, drivebay.ErrNoSupport)
}

func (c Call) check() error {
	switch {
	case c.Group:
		return fmt.Errorf("replication of volume groups: %w", drivebay.ErrNoSupport)
	case c.VolumeID == "":
		return fmt.Errorf("volume_id: required: %w", drivebay.ErrInvalid)
	case !c.Secret:
		return fmt.Errorf("volume %s: replication: %w", c.VolumeID, drivebay.ErrSecret)
	case !c.Exists:
		return fmt.Errorf("volume %s: %w", c.VolumeID, drivebay.ErrNotFound)
	case c.Pending:
		return fmt.Errorf("volume %s: %w", c.VolumeID, drivebay.ErrPending)
	}
	return nil
}

func (c Call) refuse(why string) error {
	return fmt.Errorf("volume %s: replication: %s: %w", c.VolumeID, why, drivebay.ErrRefused)
}

func (c Call) promote() (Plan, error) {
	v, s := c.View, c.View.State
	switch {
	case s.Role == drbd.RolePrimary:
		return Nothing, nil
	case s.Peer == drbd.RolePrimary:
		return Nothing, c.refuse("the peer is primary; demote it first") // by force too: the kernel refuses two
	case v.connected() && s.Disk == drbd.UpToDate:
		return BecomePrimary, nil
	case s.Disk <= drbd.Negotiating:
		return Nothing, c.refuse("the local disk is missing")
	case v.unused() && !c.HoldsData:
		return Nothing, c.refuse("no copy of the data was ever made here") // by force too: an empty disk would become the volume
	case s.Disk == drbd.Inconsistent && !v.unused():
		return Nothing, c.refuse("the local data are incomplete: a resync did not come to its end")
	case !c.Force && v.connected():
		return Nothing, c.refuse(fmt.Sprintf("the local disk is %s; promote with force to make its data the current ones", s.Disk))
	case !c.Force:
		return Nothing, c.refuse("the peer does not answer and may be primary; promote with force once it is known to be down")
	}
	return BecomePrimaryByForce, nil
}

func (c Call) resync() (Plan, error) {
	v := c.View
	if v.State.Role == drbd.RolePrimary {
		return Nothing, c.refuse("the volume is primary; demote it first")
	}
	switch verdict, why := Judge(*v); {
	case verdict == Ready:
		return Nothing, nil
	case verdict == SplitBrain && !c.Force, v.differs(): // which side is right, an operator knows
		return Nothing, c.refuse(why)
	case verdict == SplitBrain && v.Conflict == drivebay.SplitBrain:
		return DiscardLocal, nil
	case v.unused() && c.HoldsData:
		return Nothing, c.refuse("the local data have no generation of their own, and the peer's would replace them: promote with force first, or disable the replication")
	case c.Force && v.Conflict == drivebay.RefusedByPeer && !v.connected():
		return DiscardLocal, nil // whether it is a split brain, the peer alone knows
	case v.State.Connection == drbd.StandAlone:
		return Reconnect, nil
	}
	return Wait, nil
}
