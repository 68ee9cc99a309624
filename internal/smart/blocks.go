package smart

import (
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
)

// Recorded ATA pages are stored as tagged blocks: a tag of four letters, the length as four
// big-endian bytes, the page. Any block may be missing.
const blockHeader = 8

// blocks holds the tags, in the order in which their pages are decoded.
var blocks = []struct {
	tag    string
	page   string
	decode func(*drivebay.Evidence, []byte) error
}{
	{"IDFY", pageIdentify, ATAIdentify},
	{"SMDT", pageData, ATASmartData},
	{"SMTH", pageThresholds, ATASmartThresholds},
	{"SMST", pageStatus, blockStatus},
}

// ErrNotBlocks means that the bytes do not start with a known tag and a length.
var ErrNotBlocks = errors.New("no tagged ATA blocks")

// IsBlocks reports whether a document looks like tagged ATA blocks.
func IsBlocks(b []byte) bool {
	if len(b) < blockHeader {
		return false
	}
	for _, k := range blocks {
		if string(b[:4]) == k.tag {
			return be.Uint32(b[4:]) <= 16*sector
		}
	}
	return false
}

// ReadBlocks decodes a document of tagged ATA blocks. A part that is missing, cut off, duplicate
// or wrong becomes a Problem; the rest is evidence.
func ReadBlocks(b []byte) (*drivebay.Evidence, error) {
	if !IsBlocks(b) {
		return nil, ErrNotBlocks
	}
	ev := &drivebay.Evidence{Source: "ata blocks", Protocol: drivebay.ProtocolATA}
	found := split(ev, b)
	for _, k := range blocks {
		data, there := found[k.tag]
		err := fmt.Errorf("%s: block %s is missing", k.page, k.tag)
		if there {
			err = k.decode(ev, data)
		}
		if err != nil {
			ev.Problems = append(ev.Problems, drivebay.Problem{Page: k.page, Text: err.Error()})
		}
	}
	return ev, nil
}

// split returns the blocks of a document, the first of each tag.
func split(ev *drivebay.Evidence, b []byte) map[string][]byte {
	found := map[string][]byte{}
	known := map[string]bool{}
	for _, k := range blocks {
		known[k.tag] = true
	}
	for len(b) > 0 {
		if len(b) < blockHeader {
			damaged(ev, "", "%d bytes follow the last block", len(b))
			break
		}
		tag, n := string(b[:4]), uint64(be.Uint32(b[4:]))
		if b = b[blockHeader:]; n > uint64(len(b)) {
			damaged(ev, "", "block %q is truncated: %d of %d bytes", tag, len(b), n)
			n = uint64(len(b))
		}
		switch _, double := found[tag]; {
		case !known[tag]:
			damaged(ev, "", "block %q is unknown", tag)
		case double:
			damaged(ev, "", "block %q occurs twice: the first one is used", tag)
		default:
			found[tag] = b[:n]
		}
		b = b[n:]
	}
	return found
}

// blockStatus decodes the drive's verdict, which these documents store as a big-endian boolean.
func blockStatus(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageStatus, b, 4); err != nil {
		return err
	}
	switch be.Uint32(b) {
	case 0:
		ev.Verdict = drivebay.VerdictFailed
	case 1:
		ev.Verdict = drivebay.VerdictPassed
	default:
		return ignored(pageStatus, "%08Xh means neither passed nor failed", be.Uint32(b))
	}
	return nil
}
