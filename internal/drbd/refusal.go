package drbd

import (
	"slices"
	"strconv"
	"strings"
)

// Refusal is why the kernel refused the data of a peer when they connected. It says so once, in its log only: the state
// afterwards is that of a peer with another secret.
type Refusal int

// The refusals.
const (
	// SplitBrain: both sides were written without the other one. The kernel also takes data for those of a split brain whose
	// histories have an empty place in common (drbd_uuid_compare, rule 100).
	SplitBrain Refusal = iota + 1
	// Unrelated: the histories have nothing in common.
	Unrelated
	// PeerTooSmall: the peer has less room than the data of this side.
	PeerTooSmall
	// ByPeer: the peer authenticated, and ended the connection before the states of both were exchanged, as it does when it refuses the data of
	// this side. Both sides look for themselves, and the first one ends the connection, often before the other has looked (seen in the lab: the
	// side that had just booted). Only the log of the peer has the reason.
	ByPeer
)

// ended are the states in which a connection ends for a side whose peer ended it (drivers/block/drbd/drbd_receiver.c: a socket that was shut
// down, or a peer that disconnects). A side that refuses is "Disconnecting" itself.
var ended = []string{"NetworkFailure", "BrokenPipe", "TearDown"}

// lines are what the kernel writes (drbd_sync_handshake and receive_sizes of drivers/block/drbd/drbd_receiver.c). The sizes behind
// the last one differ between versions.
var lines = map[Refusal]string{
	SplitBrain:   "Split-Brain detected but unresolved, dropping connection!",
	Unrelated:    "Unrelated data, aborting!",
	PeerTooSmall: "The peer's disk size is too small!",
}

// Line is what the kernel writes into its log.
func (r Refusal) Line(resource string, minor uint32) string {
	if r == ByPeer {
		return "drbd " + resource + ": conn( WFReportParams -> " + ended[0] + " ) "
	}
	return "block drbd" + strconv.FormatUint(uint64(minor), 10) + ": " + lines[r]
}

// MetIn reports which device accepted its peer by a line of the kernel's log: the states of both were exchanged, and one of them may send data
// to the other now.
func MetIn(line string) (minor uint32, ok bool) {
	n, text, ok := ofDevice(line)
	_, after, changed := strings.Cut(text, "conn( WFReportParams -> ")
	state, _, whole := strings.Cut(after, " )")
	return n, ok && changed && whole && slices.Contains(met, state)
}

// met are the states that follow WFReportParams when a peer is accepted (drbd_sync_handshake).
var met = []string{"Connected", "WFBitMapS", "WFBitMapT"}

// ofDevice cuts a line of the log about a device.
func ofDevice(line string) (minor uint32, text string, ok bool) {
	rest, ours := strings.CutPrefix(line, "block drbd")
	number, text, whole := strings.Cut(rest, ": ")
	n, err := strconv.ParseUint(number, 10, 32)
	return uint32(n), text, ours && whole && err == nil
}

// Refused is what a line of the kernel's log says of a connection that was refused.
type Refused struct {
	Why      Refusal
	Resource string // only of ByPeer
	Minor    uint32 // of the others
}

// RefusedIn returns what a line of the kernel's log says of a connection that was refused.
func RefusedIn(line string) (r Refused, ok bool) {
	if rest, ok := strings.CutPrefix(line, "drbd "); ok {
		resource, text, _ := strings.Cut(rest, ": conn( WFReportParams -> ")
		state, _, ok := strings.Cut(text, " )")
		return Refused{Why: ByPeer, Resource: resource}, ok && slices.Contains(ended, state)
	}
	n, text, ok := ofDevice(line)
	if !ok {
		return Refused{}, false
	}
	for why, is := range lines {
		if text == is || why == PeerTooSmall && strings.HasPrefix(text, is+" (") {
			return Refused{Why: why, Minor: n}, true
		}
	}
	return Refused{}, false
}
