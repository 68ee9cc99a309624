package drbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Commands of include/linux/drbd_genl.h.
const (
	cmdGetStatus   = 2
	cmdNewMinor    = 5
	cmdNewResource = 7
	cmdConnect     = 10
	cmdDisconnect  = 11
	cmdAttach      = 12
	cmdResize      = 13
	cmdPrimary     = 14
	cmdSecondary   = 15
	cmdDetach      = 18
	cmdInvalidate  = 19
	cmdDown        = 27
)

// Groups of attributes: DRBD_NLA_* of include/linux/drbd_genl.h.
const (
	groupReply      = 1
	groupContext    = 2
	groupDisk       = 3
	groupNet        = 5
	groupRole       = 6
	groupResize     = 7
	groupState      = 8
	groupDisconnect = 12
	groupDetach     = 13
)

// mandatory is DRBD_GENLA_F_MANDATORY (genl_magic_struct.h): the kernel refuses a request with an attribute
// that it does not know. Without the flag it ignores the attribute: a missing option of the connection
// would go unnoticed.
const mandatory = 1 << 14

// typeMask removes the flags NLA_F_NESTED and mandatory from the type of an attribute.
const typeMask = 1<<14 - 1

// noMinor is the minor number of a request that names a resource or a connection (drbd_genl_api.h).
const noMinor = ^uint32(0)

const (
	netlinkHeader = 16 // struct nlmsghdr
	genericHeader = 4  // struct genlmsghdr
	drbdHeader    = 8  // struct drbd_genlmsghdr
	headers       = netlinkHeader + genericHeader + drbdHeader
)

var native = binary.NativeEndian

// attribute is one field of a group.
type attribute struct {
	number uint16
	value  []byte
}

func u8(number uint16, v bool) attribute {
	if v {
		return attribute{number, []byte{1}}
	}
	return attribute{number, []byte{0}}
}

func u32(number uint16, v uint32) attribute {
	return attribute{number, native.AppendUint32(nil, v)}
}

func u64(number uint16, v uint64) attribute {
	return attribute{number, native.AppendUint64(nil, v)}
}

// text is a string with the NUL that NLA_NUL_STRING needs.
func text(number uint16, v string) attribute {
	return attribute{number, append([]byte(v), 0)}
}

// group is one nested attribute at the top level of a message.
type group struct {
	number uint16
	fields []attribute
}

// request is one message to the kernel.
type request struct {
	command uint8
	minor   uint32
	flags   uint16 // of struct nlmsghdr, beside NLM_F_REQUEST
	groups  []group
}

// encode returns the message for the family with that number. The capacity suffices from the start: an append
// that moves the message would leave a copy of a secret in memory.
func (r request) encode(family uint16, sequence uint32) []byte {
	size := headers
	for _, g := range r.groups {
		size += unix.SizeofNlAttr
		for _, f := range g.fields {
			size += unix.SizeofNlAttr + align(len(f.value))
		}
	}
	b := make([]byte, 0, size)
	b = native.AppendUint32(b, uint32(size))
	b = native.AppendUint16(b, family)
	b = native.AppendUint16(b, r.flags|unix.NLM_F_REQUEST)
	b = native.AppendUint32(b, sequence)
	b = native.AppendUint32(b, 0) // the kernel fills in the port
	b = append(b, r.command, apiVersion, 0, 0)
	b = native.AppendUint32(b, r.minor)
	b = native.AppendUint32(b, 0) // flags: none of a request of this package
	for _, g := range r.groups {
		begin := len(b)
		b = native.AppendUint16(b, 0) // the length, below
		b = native.AppendUint16(b, g.number|unix.NLA_F_NESTED)
		for _, f := range g.fields {
			b = native.AppendUint16(b, uint16(unix.SizeofNlAttr+len(f.value)))
			b = native.AppendUint16(b, f.number|mandatory)
			b = append(b, f.value...)
			b = append(b, make([]byte, align(len(f.value))-len(f.value))...)
		}
		native.PutUint16(b[begin:], uint16(len(b)-begin))
	}
	return b
}

func align(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// errMalformed is a message that contradicts its own lengths.
var errMalformed = errors.New("malformed netlink message")

// message is one netlink message, without its header.
type message struct {
	kind, flags uint16
	sequence    uint32
	body        []byte
}

// messages splits what one read of the socket returned.
func messages(b []byte) ([]message, error) {
	var all []message
	for len(b) > 0 {
		if len(b) < netlinkHeader {
			return all, fmt.Errorf("%w: %d bytes after message %d", errMalformed, len(b), len(all))
		}
		n := int(native.Uint32(b))
		if n < netlinkHeader || n > len(b) {
			return all, fmt.Errorf("%w: length %d of %d bytes", errMalformed, n, len(b))
		}
		all = append(all, message{native.Uint16(b[4:]), native.Uint16(b[6:]), native.Uint32(b[8:]), b[netlinkHeader:n]})
		b = b[min(align(n), len(b)):]
	}
	return all, nil
}

// attributes calls each with every attribute of b.
func attributes(b []byte, each func(number uint16, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < unix.SizeofNlAttr {
			return fmt.Errorf("%w: %d bytes after an attribute", errMalformed, len(b))
		}
		n := int(native.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return fmt.Errorf("%w: attribute of %d bytes in %d", errMalformed, n, len(b))
		}
		if err := each(native.Uint16(b[2:])&typeMask, b[unix.SizeofNlAttr:n]); err != nil {
			return err
		}
		b = b[min(align(n), len(b)):]
	}
	return nil
}

// reply is the kernel's answer to a request.
type reply struct {
	minor  uint32
	code   int32
	info   []string
	groups map[uint16][]byte
}

// decodeReply reads the body of a message of the family.
func decodeReply(body []byte) (reply, error) {
	if len(body) < genericHeader+drbdHeader {
		return reply{}, fmt.Errorf("%w: body of %d bytes", errMalformed, len(body))
	}
	r := reply{minor: native.Uint32(body[genericHeader:]), code: int32(native.Uint32(body[genericHeader+4:])), groups: map[uint16][]byte{}}
	err := attributes(body[genericHeader+drbdHeader:], func(number uint16, value []byte) error {
		if number != groupReply {
			r.groups[number] = value
			return nil
		}
		return attributes(value, func(number uint16, value []byte) error {
			if number == 1 {
				r.info = append(r.info, nulTerminated(value))
			}
			return nil
		})
	})
	return r, err
}

func nulTerminated(b []byte) string {
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// decodeFamily reads the number of a family and its API version from the kernel's answer to
// CTRL_CMD_GETFAMILY (include/uapi/linux/genetlink.h).
func decodeFamily(body []byte) (number uint16, version uint32, err error) {
	if len(body) < genericHeader {
		return 0, 0, fmt.Errorf("%w: body of %d bytes", errMalformed, len(body))
	}
	err = attributes(body[genericHeader:], func(attr uint16, value []byte) error {
		switch {
		case attr == unix.CTRL_ATTR_FAMILY_ID && len(value) == 2:
			number = native.Uint16(value)
		case attr == unix.CTRL_ATTR_VERSION && len(value) == 4:
			version = native.Uint32(value)
		}
		return nil
	})
	if err == nil && number == 0 {
		err = fmt.Errorf("%w: no family number", errMalformed)
	}
	return number, version, err
}
