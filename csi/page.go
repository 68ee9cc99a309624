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

// Limits of a page. gRPC clients refuse an answer of more than 4 MiB unless they are
// configured otherwise.
const (
	pageEntries = 10_000
	pageBytes   = 3 << 20
)

// list is the kind of list that a token belongs to.
type list byte

const (
	listVolumes   list = 'v'
	listSnapshots list = 's'
	listHealth    list = 'h'
)

// token returns a token with the id after which the next page starts. It stays valid when
// volumes come and go, and across restarts. The checksum detects foreign tokens.
func (l list) token(after string) string {
	return fmt.Sprintf("%c%08x%s", l, l.sum(after), after)
}

func (l list) sum(id string) uint32 { return crc32.ChecksumIEEE([]byte(string(rune(l)) + id)) }

// after returns the id in a token; "" for the empty token, the start of the list.
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
	return "", status.Error(codes.Aborted, "starting_token: not issued by this call; start again without a token")
}

// page counts the entries and bytes of an answer.
type page struct {
	list        list
	max         int
	count, size int
	last        string
	more        bool
}

// newPage returns the page for a request's max_entries and starting_token, and the id
// after which it starts.
func newPage(l list, max int32, token string) (p page, after string, err error) {
	if max < 0 {
		return p, "", fmt.Errorf("max_entries: %w: negative", drivebay.ErrInvalid)
	}
	p = page{list: l, max: pageEntries}
	if max > 0 {
		p.max = min(p.max, int(max))
	}
	after, err = l.after(token)
	return p, after, err
}

// takes adds an entry and reports whether it still fits; the first one always does.
func (p *page) takes(id string, entry proto.Message) bool {
	const frame = 6 // bytes of the tag and length in the answer
	size := proto.Size(entry) + frame
	if p.count == p.max || p.count > 0 && p.size+size > pageBytes {
		p.more = true
		return false
	}
	p.count, p.size, p.last = p.count+1, p.size+size, id
	return true
}

// next returns the token of the next page; it is empty after the last page.
func (p *page) next() string {
	if !p.more {
		return ""
	}
	return p.list.token(p.last)
}
