package drivemgr

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Claim claims a drive for volumes on behalf of an operator, or drops the claim. It
// writes nothing to the drive.
func (m *claimsT) Claim(ctx context.Context, drive string, on bool) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if on {
			return m.claim(t)
		}
		return m.unclaim(t)
	})
}

func (m *claimsT) claim(t *tracked) error {
	if c := t.rec.Claim; c != nil && c.By == drivebay.ClaimedByOperator {
		return nil
	}
	if why := t.drive.Refusals(); len(why) > 0 {
		return fmt.Errorf("drive %s (%s): %w: %s", t.drive.ID, t.drive.Name, drivebay.ErrRefused, strings.Join(why, "; "))
	}
	m.setClaim(t, drivebay.ClaimedByOperator, "an operator asked for it")
	m.succeed(t)
	return nil
}

func (m *claimsT) unclaim(t *tracked) error {
	switch c := t.rec.Claim; {
	case c == nil:
		return nil
	case c.By == drivebay.ClaimedByConfig:
		return fmt.Errorf("drive %s (%s): %w: the configuration claims it: change \"claim\" there", t.drive.ID, t.drive.Name, drivebay.ErrRefused)
	}
	if why := m.unclaimBlocked(t); why != "" {
		return fmt.Errorf("drive %s (%s): %w: %s", t.drive.ID, t.drive.Name, drivebay.ErrBusy, why)
	}
	m.dropClaim(t, "an operator asked for it")
	return nil
}

// BlockUnclaim sets why: a drive keeps its claim while why returns a reason, for example a copy
// that cannot be stopped without another write.
func (m *fleetT) BlockUnclaim(why func(drive string) string) { m.unclaimBlock.Store(&why) }

func (m *fleetT) unclaimBlocked(t *tracked) string {
	if why := m.unclaimBlock.Load(); why != nil {
		return (*why)(t.drive.ID)
	}
	return ""
}

// followSelectors claims a drive that the configuration selects, once it is known to
// hold nothing foreign, and drops the claim when the configuration no longer selects
// it. A claimed drive that gets foreign content stays claimed and is not usable. Without
// the stored records it claims nothing: a drive may have been taken out.
func (m *claimsT) followSelectors(t *tracked) {
	if m.keeper.unread() != nil {
		return
	}
	means := m.opt.Claim.Match(&t.drive)
	switch c := t.rec.Claim; {
	case c == nil && means && len(t.drive.Refusals()) == 0:
		m.setClaim(t, drivebay.ClaimedByConfig, "the configuration means it")
	case c != nil && c.By == drivebay.ClaimedByConfig && !means && t.present && m.unclaimBlocked(t) == "":
		m.dropClaim(t, "the configuration means it no more")
	default:
		m.succeed(t)
		return
	}
	m.succeed(t)
	m.keepRecord(t)
}

func (m *claimsT) setClaim(t *tracked, by drivebay.ClaimedBy, cause string) {
	now := m.machine.Now()
	t.rec.Claim = &drivebay.Claim{By: by, Since: now}
	t.drive.Claim = t.rec.Claim
	m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventClaim, Drive: t.drive.ID, To: string(by), Cause: cause + ": " + describe(&t.drive)})
}

func (m *claimsT) dropClaim(t *tracked, cause string) {
	m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventClaim, Drive: t.drive.ID, From: string(t.rec.Claim.By), Cause: cause + ": " + describe(&t.drive)})
	t.rec.Claim, t.drive.Claim = nil, nil
}
