package replication

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// TestHeard: a conflict ends with a connection that was over before anything looked, and what only the peer knows does not replace what this
// side knows.
func TestHeard(t *testing.T) {
	alone := drbd.Status{Minor: 7, State: drbd.State{Connection: drbd.WFConnection}}
	lines := func(recorded drivebay.ReplicationConflict, heard ...drivebay.ReplicationConflict) drivebay.ReplicationConflict {
		var s Memory
		for _, why := range heard {
			s.Hear(7, why)
		}
		return s.Conflict(alone, recorded)
	}
	const none, split, refused = drivebay.ReplicationConflict(""), drivebay.SplitBrain, drivebay.RefusedByPeer
	for _, c := range []struct {
		recorded drivebay.ReplicationConflict
		heard    []drivebay.ReplicationConflict
		want     drivebay.ReplicationConflict
	}{
		{none, nil, none},
		{split, nil, split},
		{none, []drivebay.ReplicationConflict{split}, split},
		{split, []drivebay.ReplicationConflict{none}, none},
		{none, []drivebay.ReplicationConflict{split, none}, none},
		{none, []drivebay.ReplicationConflict{split, none, split}, split},
		{none, []drivebay.ReplicationConflict{refused}, refused},
		{none, []drivebay.ReplicationConflict{refused, split}, split},
		{none, []drivebay.ReplicationConflict{split, refused}, split},
		{split, []drivebay.ReplicationConflict{refused}, split},
		{refused, []drivebay.ReplicationConflict{none}, none},
	} {
		if got := lines(c.recorded, c.heard...); got != c.want {
			t.Errorf("recorded %q, heard %q: %q, want %q", c.recorded, c.heard, got, c.want)
		}
	}
	var s Memory
	s.Hear(7, split)
	if got := s.Conflict(drbd.Status{Minor: 7, State: drbd.State{Connection: drbd.Connected}}, split); got != none {
		t.Errorf("connected, with %q", got)
	}
}
