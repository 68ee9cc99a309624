package csi

import (
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Bounds of a page when its caller names none: gRPC clients refuse an answer of
// more than 4 MiB unless they are told otherwise.
const (
	pageEntries = 10_000
	pageBytes   = 3 << 20
)

// list names what a token belongs to.
type list byte

const (
	listVolumes   list = 'v'
	listSnapshots list = 's'
	listHealth    list = 'h'
)

// A token says after which id to go on, so that it stays true whatever comes and
// goes meanwhile, here or across a restart. The sum tells ours from others'.
func (l list) token(after string) string {
	return fmt.Sprintf("%c%08x%s", l, l.sum(after), after)
}

func (l list) sum(id string) uint32 { return crc32.ChecksumIEEE([]byte(string(rune(l)) + id)) }

// after reads a token; the empty one is the beginning.
func (l list) after(token string) (id string, err error) {
	if token == "" {
		return "", nil
	}
	if len(token) > 9 && token[0] == byte(l) {
		id = token[9:]
		if sum, err := strconv.ParseUint(token[1:9], 16, 32); err == nil && uint32(sum) == l.sum(id) {
			return id, nil
		}
	}
	return "", status.Error(codes.Aborted, "starting_token is none of this list's: begin again without one")
}

// page counts what still fits into an answer.
type page struct {
	list        list
	max         int
	count, size int
	last        string
	more        bool
}

// newPage is for a request's max_entries and starting_token.
func newPage(l list, max int32, token string) (p page, after string, err error) {
	if max < 0 {
		return p, "", fmt.Errorf("max_entries: %w: it is negative", drivebay.ErrInvalid)
	}
	p = page{list: l, max: pageEntries}
	if max > 0 {
		p.max = min(p.max, int(max))
	}
	after, err = l.after(token)
	return p, after, err
}

// takes says whether the entry of an id still fits; the first always does.
func (p *page) takes(id string, entry proto.Message) bool {
	const frame = 6 // its tag and length in the answer
	size := proto.Size(entry) + frame
	if p.count == p.max || p.count > 0 && p.size+size > pageBytes {
		p.more = true
		return false
	}
	p.count, p.size, p.last = p.count+1, p.size+size, id
	return true
}

// next is the token of the page after this; empty: there is none.
func (p *page) next() string {
	if !p.more {
		return ""
	}
	return p.list.token(p.last)
}
