package claims

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/lights"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// Claims changes the claims of drives.
type Claims struct {
	State  *state.State
	Lights *lights.Lights
}

// Claim claims a drive for volumes on behalf of an operator, or removes the claim. It writes
// nothing to the drive.
func (m *Claims) Claim(ctx context.Context, drive string, on bool) error {
	return m.State.Command(ctx, drive, func(t *state.Tracked) error {
		if on {
			return m.claim(t)
		}
		return m.unclaim(t)
	})
}

func (m *Claims) claim(t *state.Tracked) error {
	if c := t.Rec.Claim; c != nil && c.By == drivebay.ClaimedByOperator {
		return nil
	}
	if why := t.Drive.Refusals(); len(why) > 0 {
		return fmt.Errorf("drive %s (%s): %w: %s", t.Drive.ID, t.Drive.Name, drivebay.ErrRefused, strings.Join(why, "; "))
	}
	m.setClaim(t, drivebay.ClaimedByOperator, "requested by an operator")
	m.succeed(t)
	return nil
}

func (m *Claims) unclaim(t *state.Tracked) error {
	switch c := t.Rec.Claim; {
	case c == nil:
		return nil
	case c.By == drivebay.ClaimedByConfig || m.State.Opt.Claim.Match(&t.Drive): // the next look would claim it again
		return fmt.Errorf("drive %s (%s): %w: the configuration claims the drive: change \"claim\" in the configuration", t.Drive.ID, t.Drive.Name, drivebay.ErrRefused)
	}
	if why := m.State.UnclaimBlocked(t); why != "" {
		return fmt.Errorf("drive %s (%s): %w: %s", t.Drive.ID, t.Drive.Name, drivebay.ErrBusy, why)
	}
	m.dropClaim(t, "requested by an operator")
	return nil
}

// FollowSelectors claims a drive that the configuration selects, once the drive was read and has
// no foreign content, and drops the claim when the configuration no longer selects the drive. A
// claimed drive that gets foreign content stays claimed and is not usable. Without the stored
// records FollowSelectors claims nothing: a drive may have been removed.
func (m *Claims) FollowSelectors(t *state.Tracked) {
	if m.State.Keeper.Unread() != nil {
		return
	}
	selected := m.State.Opt.Claim.Match(&t.Drive)
	switch c := t.Rec.Claim; {
	case c == nil && selected && len(t.Drive.Refusals()) == 0:
		m.setClaim(t, drivebay.ClaimedByConfig, "selected by the configuration")
	case c != nil && c.By == drivebay.ClaimedByConfig && !selected && t.Present && m.State.UnclaimBlocked(t) == "":
		m.dropClaim(t, "no longer selected by the configuration")
	default:
		m.succeed(t)
		return
	}
	m.succeed(t)
	m.State.KeepRecord(t)
}

func (m *Claims) setClaim(t *state.Tracked, by drivebay.ClaimedBy, cause string) {
	now := m.State.Machine.Now()
	t.Rec.Claim = &drivebay.Claim{By: by, Since: now}
	t.Drive.Claim = t.Rec.Claim
	m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventClaim, Drive: t.Drive.ID, To: string(by), Cause: cause + ": " + state.Describe(&t.Drive)})
}

func (m *Claims) dropClaim(t *state.Tracked, cause string) {
	m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventClaim, Drive: t.Drive.ID, From: string(t.Rec.Claim.By), Cause: cause + ": " + state.Describe(&t.Drive)})
	t.Rec.Claim, t.Drive.Claim = nil, nil
}
