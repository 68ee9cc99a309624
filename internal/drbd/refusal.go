package drbd

import (
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
)

// lines are what the kernel writes (drbd_sync_handshake and receive_sizes of drivers/block/drbd/drbd_receiver.c). The sizes behind
// the last one differ between versions.
var lines = map[Refusal]string{
	SplitBrain:   "Split-Brain detected but unresolved, dropping connection!",
	Unrelated:    "Unrelated data, aborting!",
	PeerTooSmall: "The peer's disk size is too small!",
}

// Line is what the kernel writes into its log.
func (r Refusal) Line(minor uint32) string {
	return "block drbd" + strconv.FormatUint(uint64(minor), 10) + ": " + lines[r]
}

// RefusedIn reports which device refused its peer by a line of the kernel's log.
func RefusedIn(line string) (minor uint32, r Refusal, ok bool) {
	rest, ok := strings.CutPrefix(line, "block drbd")
	number, text, ok2 := strings.Cut(rest, ": ")
	n, err := strconv.ParseUint(number, 10, 32)
	if !ok || !ok2 || err != nil {
		return 0, 0, false
	}
	for r, is := range lines {
		if text == is || r == PeerTooSmall && strings.HasPrefix(text, is+" (") {
			return uint32(n), r, true
		}
	}
	return 0, 0, false
}
