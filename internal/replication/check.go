package replication

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

// Check refuses a request that no connection can be made of.
func Check(r drivebay.ReplicationRequest) error {
	switch {
	case r.Protocol != "A" && r.Protocol != "C":
		return fmt.Errorf("protocol: %w: %q: must be A or C", drivebay.ErrInvalid, r.Protocol)
	case !r.Local.IsValid() || !r.Peer.IsValid() || r.Local.Addr().IsUnspecified() || r.Peer.Addr().IsUnspecified() || r.Local.Port() == 0 || r.Peer.Port() == 0:
		return fmt.Errorf("addresses %s and %s: %w: must have an address and a port", r.Local, r.Peer, drivebay.ErrInvalid)
	case r.Local.Addr().Unmap().Is4() != r.Peer.Addr().Unmap().Is4():
		return fmt.Errorf("addresses %s and %s: %w: must be of one family", r.Local, r.Peer, drivebay.ErrInvalid)
	case r.Local == r.Peer:
		return fmt.Errorf("addresses %s and %s: %w: must differ", r.Local, r.Peer, drivebay.ErrInvalid)
	}
	return nil
}
