package drbd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// NewResource makes a resource. A resource that exists stays as it is.
func (c *Client) NewResource(ctx context.Context, resource string) error {
	if resource == "" || len(resource) > 127 {
		return fmt.Errorf("drbd: resource name %q: has to have 1 to 127 bytes", resource)
	}
	return c.do(ctx, "new resource "+resource, request{command: cmdNewResource, minor: noMinor, groups: []group{{groupContext, []attribute{text(2, resource)}}}})
}

// NewMinor makes the device /dev/drbdMINOR as a volume of a resource. A device that exists stays as it is.
func (c *Client) NewMinor(ctx context.Context, resource string, volume, minor uint32) error {
	return c.do(ctx, fmt.Sprintf("new minor %d", minor), request{command: cmdNewMinor, minor: minor,
		groups: []group{{groupContext, []attribute{u32(1, volume), text(2, resource)}}}})
}

// Backing is the local disk of a device, with its metadata at its end.
type Backing struct {
	Disk string
	// Bytes is the size of the device, at most that of the disk without the metadata. It must be one of ValidSize.
	Bytes uint64
	// MaxResyncRate limits the resynchronization, in KiB/s; 0 leaves the kernel's default.
	MaxResyncRate uint32
}

// internalMetadata is DRBD_MD_INDEX_INTERNAL.
const internalMetadata = -1

// bitmapWord is the part of a device that one word of the bitmap stands for.
const bitmapWord = 64 * bitBytes

// ValidSize reports whether DRBD replicates a device of that size as a whole. The kernel counts the bits of the bitmap
// at each attach and masks the last word, so that the bits beyond the device do not count; when the last
// word is in use to its end, the mask is 0, and the kernel forgets which of the last 256 KiB differ from the peer
// (bm_count_bits of drivers/block/drbd/drbd_bitmap.c, Linux 6.1). TestLabDRBDBitmap shows it. A device of such a size
// has to be made 4 KiB larger.
func ValidSize(bytes uint64) bool {
	return bytes >= bitBytes && bytes%bitBytes == 0 && bytes%bitmapWord != 0
}

func checkSize(bytes uint64) error {
	if !ValidSize(bytes) {
		return fmt.Errorf("size of %d bytes: must be a multiple of 4 KiB, and not one of 256 KiB, of which the kernel does not replicate the end", bytes)
	}
	return nil
}

// Attach gives the device its local disk.
func (c *Client) Attach(ctx context.Context, minor uint32, b Backing) error {
	if err := checkSize(b.Bytes); err != nil {
		return fmt.Errorf("drbd: attach to minor %d: %w", minor, err)
	}
	index := int32(internalMetadata)
	fields := []attribute{text(1, b.Disk), text(2, b.Disk), u32(3, uint32(index)), u64(4, b.Bytes/sectorBytes)}
	if b.MaxResyncRate != 0 {
		fields = append(fields, u32(14, b.MaxResyncRate)) // c_max_rate
	}
	return c.do(ctx, fmt.Sprintf("attach to minor %d", minor), request{command: cmdAttach, minor: minor, groups: []group{{groupContext, nil}, {groupDisk, fields}}})
}

// Detach takes the local disk away. Force does not wait for I/O that the disk holds.
func (c *Client) Detach(ctx context.Context, minor uint32, force bool) error {
	return c.do(ctx, fmt.Sprintf("detach from minor %d", minor), request{command: cmdDetach, minor: minor,
		groups: []group{{groupContext, nil}, {groupDetach, []attribute{u8(1, force)}}}})
}

// Protocol says when a write is complete: DRBD_PROT_* of include/linux/drbd.h.
type Protocol uint32

// The protocols of this package: with A once the local disk and the local send buffer have the write, with C once both
// disks have it.
const (
	ProtocolA Protocol = 1
	ProtocolC Protocol = 3
)

// ProtocolOf is the protocol with that letter.
func ProtocolOf(letter string) Protocol {
	if letter == "A" {
		return ProtocolA
	}
	return ProtocolC
}

// Peer is a connection.
type Peer struct {
	Local, Remote netip.AddrPort
	Protocol      Protocol
	// Secret and its keyed hash authenticate both sides to each other. Neither is optional: without them,
	// whatever connects from the peer's address gets all data.
	Secret Secret
	// Hash is a hash algorithm of the kernel, "sha256" by default. The kernel makes "hmac(sha256)" of it.
	Hash string
	// DiscardMyData declares the local data to be the loser of a split brain. DRBD ignores it without a split brain, and
	// forgets it when the local side becomes primary.
	DiscardMyData bool
}

// Connect lets the resource connect to its peer, whenever that answers. After a split brain the connection
// ends in StandAlone, whatever the roles are: after-sb-0pri, 1pri and 2pri are "disconnect", because each of the other
// policies makes DRBD discard the data of one side by itself.
func (c *Client) Connect(ctx context.Context, resource string, p Peer) error {
	net, err := p.fields()
	if err != nil {
		return fmt.Errorf("drbd: connect %s: %w", resource, err)
	}
	defer clearSecret(net)
	return c.do(ctx, "connect "+resource, request{command: cmdConnect, minor: noMinor,
		groups: []group{{groupContext, append([]attribute{text(2, resource)}, p.addresses()...)}, {groupNet, net}}})
}

// fields are those of DRBD_NLA_NET_CONF.
func (p Peer) fields() ([]attribute, error) {
	if p.Secret.text == "" {
		return nil, errors.New("shared secret: required")
	}
	if p.Protocol != ProtocolA && p.Protocol != ProtocolC {
		return nil, fmt.Errorf("protocol %d: must be A or C", p.Protocol)
	}
	if !p.Local.IsValid() || !p.Remote.IsValid() || p.Local.Addr().Unmap().Is4() != p.Remote.Addr().Unmap().Is4() {
		return nil, fmt.Errorf("addresses %s and %s: must be of one family", p.Local, p.Remote)
	}
	hash := p.Hash
	if hash == "" {
		hash = "sha256"
	}
	const disconnect = 0 // ASB_DISCONNECT
	return []attribute{text(1, p.Secret.text), text(2, hash), u32(6, uint32(p.Protocol)),
		u32(17, disconnect), u32(18, disconnect), u32(19, disconnect), u8(24, false), u8(25, p.DiscardMyData)}, nil
}

func clearSecret(net []attribute) { clear(net[0].value) }

// addresses are the key of a connection.
func (p Peer) addresses() []attribute {
	return []attribute{{3, sockaddr(p.Local)}, {4, sockaddr(p.Remote)}}
}

// sockaddr is struct sockaddr_in or sockaddr_in6. The kernel compares addresses byte by byte: padding is zero.
func sockaddr(a netip.AddrPort) []byte {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		b := native.AppendUint16(make([]byte, 0, 16), unix.AF_INET)
		b = binary.BigEndian.AppendUint16(b, a.Port())
		b = append(b, ip.AsSlice()...)
		return append(b, make([]byte, 8)...)
	}
	b := native.AppendUint16(make([]byte, 0, 28), unix.AF_INET6)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	b = append(b, 0, 0, 0, 0)
	b = append(b, ip.AsSlice()...)
	return append(b, 0, 0, 0, 0)
}

// Disconnect ends the connection between two addresses, if there is one. The kernel refuses a request that names the
// resource beside them ("no resource name expected", drbd_adm_prepare), and forgets the addresses of a connection that
// became StandAlone, by itself too, as after a split brain. Force does not tell the peer.
func (c *Client) Disconnect(ctx context.Context, local, remote netip.AddrPort, force bool) error {
	err := c.do(ctx, fmt.Sprintf("disconnect %s", remote), request{command: cmdDisconnect, minor: noMinor,
		groups: []group{{groupContext, Peer{Local: local, Remote: remote}.addresses()}, {groupDisconnect, []attribute{u8(1, force)}}}})
	if refused := (*CodeError)(nil); errors.As(err, &refused) && refused.Code == invalidRequest && slices.Contains(refused.Info, "unknown connection") {
		return nil
	}
	return err
}

// invalidRequest is ERR_INVALID_REQUEST.
const invalidRequest = 162

// Primary makes the device readable and writable. Force declares local data that are not known to be current to be
// so: they win over the peer's. Only an operator decides that.
func (c *Client) Primary(ctx context.Context, minor uint32, force bool) error {
	return c.do(ctx, fmt.Sprintf("make minor %d primary", minor), request{command: cmdPrimary, minor: minor,
		groups: []group{{groupContext, nil}, {groupRole, []attribute{u8(1, force)}}}})
}

// Secondary makes the device unusable here.
func (c *Client) Secondary(ctx context.Context, minor uint32) error {
	return c.do(ctx, fmt.Sprintf("make minor %d secondary", minor), request{command: cmdSecondary, minor: minor,
		groups: []group{{groupContext, nil}, {groupRole, []attribute{u8(1, false)}}}})
}

// Resize moves the metadata to the end of a disk that has grown, and then makes the device as large as asked for, or
// as the peer's disk allows. One of the sides has to be primary. Without a peer the kernel accepts the request, moves the
// metadata, and leaves the size as it is: the caller has to look at the status. The old superblock stays where it was. The peer's answer
// to a request for a smaller size that is still under way makes the device small again, below its users.
func (c *Client) Resize(ctx context.Context, minor uint32, bytes uint64) error {
	if err := checkSize(bytes); err != nil {
		return fmt.Errorf("drbd: resize minor %d: %w", minor, err)
	}
	return c.do(ctx, fmt.Sprintf("resize minor %d", minor), request{command: cmdResize, minor: minor,
		groups: []group{{groupContext, nil}, {groupResize, []attribute{u64(1, bytes/sectorBytes)}}}})
}

// Invalidate declares the local data to be worthless: the peer's replace all of them. The package has no command for the
// peer's data: each side gives up only its own.
func (c *Client) Invalidate(ctx context.Context, minor uint32) error {
	return c.do(ctx, fmt.Sprintf("invalidate minor %d", minor), request{command: cmdInvalidate, minor: minor, groups: []group{{groupContext, nil}}})
}

// Down disconnects, detaches and removes a resource with its devices. The data stay.
func (c *Client) Down(ctx context.Context, resource string) error {
	return c.do(ctx, "take "+resource+" down", request{command: cmdDown, minor: noMinor, groups: []group{{groupContext, []attribute{text(2, resource)}}}})
}
