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
)

// What the kernel writes (drbd_sync_handshake of drivers/block/drbd/drbd_receiver.c).
const (
	splitBrainLine = "Split-Brain detected but unresolved, dropping connection!"
	unrelatedLine  = "Unrelated data, aborting!"
)

// Line is what the kernel writes into its log.
func (r Refusal) Line(minor uint32) string {
	text := splitBrainLine
	if r == Unrelated {
		text = unrelatedLine
	}
	return "block drbd" + strconv.FormatUint(uint64(minor), 10) + ": " + text
}

// RefusedIn reports which device refused its peer by a line of the kernel's log.
func RefusedIn(line string) (minor uint32, r Refusal, ok bool) {
	rest, ok := strings.CutPrefix(line, "block drbd")
	number, text, ok2 := strings.Cut(rest, ": ")
	if !ok || !ok2 {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(number, 10, 32)
	switch {
	case err != nil:
		return 0, 0, false
	case text == splitBrainLine:
		return uint32(n), SplitBrain, true
	case text == unrelatedLine:
		return uint32(n), Unrelated, true
	}
	return 0, 0, false
}
