// Package parameters reads what the replication of a volume is enabled with, for each edge that enables one.
package parameters

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// Parameters that the replication of a volume is enabled with: of a VolumeReplicationClass, or of the API.
const (
	Local    = "drivebay.io/localAddress"  // address and port
	Peer     = "drivebay.io/peerAddress"   // address and port
	Protocol = "drivebay.io/protocol"      // A or C, the default
	Pair     = "drivebay.io/pair"          // what both volumes are called together; else their id
	Rate     = "drivebay.io/maxResyncRate" // KiB/s
	Role     = "drivebay.io/role"          // source: the data of this side are the volume; target
)

// Check refuses unknown parameters.
func Check(parameters map[string]string) error {
	known := []string{Local, Peer, Protocol, Pair, Rate, Role}
	for key := range parameters {
		if !slices.Contains(known, key) {
			return fmt.Errorf("parameters: %w: unknown key %q", drivebay.ErrInvalid, key)
		}
	}
	return nil
}

// Parse reads the parameters of an Enable.
func Parse(parameters map[string]string) (r drivebay.ReplicationRequest, err error) {
	bad := func(key, want string) error {
		return fmt.Errorf("parameters: %s: %w: %q: must be %s", key, drivebay.ErrInvalid, parameters[key], want)
	}
	if err := Check(parameters); err != nil {
		return r, err
	}
	if r.Local, err = netip.ParseAddrPort(parameters[Local]); err != nil {
		return r, bad(Local, "an address and a port")
	}
	if r.Peer, err = netip.ParseAddrPort(parameters[Peer]); err != nil {
		return r, bad(Peer, "an address and a port")
	}
	if r.Protocol = parameters[Protocol]; r.Protocol == "" {
		r.Protocol = "C"
	}
	if r.Pair = parameters[Pair]; len(r.Pair) > 253 || strings.ContainsFunc(r.Pair, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return r, bad(Pair, "at most 253 printable characters of ASCII, without spaces")
	}
	if text, is := parameters[Rate]; is {
		rate, err := strconv.ParseUint(text, 10, 32)
		if err != nil || rate == 0 {
			return r, bad(Rate, "a number of KiB per second")
		}
		r.MaxResyncRate = uint32(rate)
	}
	switch parameters[Role] {
	case "source":
		r.HoldsData = true
	case "target":
	default:
		return r, bad(Role, "source or target")
	}
	return r, nil
}

// Of returns the parameters that Parse reads a request from.
func Of(r drivebay.ReplicationRequest) map[string]string {
	out := map[string]string{Local: r.Local.String(), Peer: r.Peer.String(), Protocol: r.Protocol, Role: "target"}
	if r.HoldsData {
		out[Role] = "source"
	}
	if r.Pair != "" {
		out[Pair] = r.Pair
	}
	if r.MaxResyncRate > 0 {
		out[Rate] = strconv.FormatUint(uint64(r.MaxResyncRate), 10)
	}
	return out
}
