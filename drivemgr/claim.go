package drivemgr

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Claim takes a drive into use for volumes, by an operator's word, or gives it
// back. It writes nothing to the drive.
func (m *Manager) Claim(ctx context.Context, drive string, on bool) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if on {
			return m.claim(t)
		}
		return m.unclaim(t)
	})
}

func (m *Manager) claim(t *tracked) error {
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

func (m *Manager) unclaim(t *tracked) error {
	switch c := t.rec.Claim; {
	case c == nil:
		return nil
	case c.By == drivebay.ClaimedByConfig:
		return fmt.Errorf("drive %s (%s): %w: the configuration claims it: change \"claim\" there", t.drive.ID, t.drive.Name, drivebay.ErrRefused)
	}
	m.dropClaim(t, "an operator asked for it")
	return nil
}

// followSelectors claims what the configuration means, once it is known to hold
// nothing of anybody else's, and lets go of what it means no more. What becomes
// foreign later stays claimed and unusable: somebody should look at it.
func (m *Manager) followSelectors(t *tracked) {
	means := m.opt.Claim.Match(&t.drive)
	switch c := t.rec.Claim; {
	case c == nil && means && len(t.drive.Refusals()) == 0:
		m.setClaim(t, drivebay.ClaimedByConfig, "the configuration means it")
	case c != nil && c.By == drivebay.ClaimedByConfig && !means && t.present:
		m.dropClaim(t, "the configuration means it no more")
	default:
		m.succeed(t)
		return
	}
	m.succeed(t)
	m.keepRecord(t)
}

func (m *Manager) setClaim(t *tracked, by drivebay.ClaimedBy, cause string) {
	now := m.machine.Now()
	t.rec.Claim = &drivebay.Claim{By: by, Since: now}
	t.drive.Claim = t.rec.Claim
	m.tell(drivebay.Event{At: now, Kind: drivebay.EventClaim, Drive: t.drive.ID, To: string(by), Cause: cause + ": " + describe(&t.drive)})
}

func (m *Manager) dropClaim(t *tracked, cause string) {
	m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventClaim, Drive: t.drive.ID, From: string(t.rec.Claim.By), Cause: cause + ": " + describe(&t.drive)})
	t.rec.Claim, t.drive.Claim = nil, nil
}
