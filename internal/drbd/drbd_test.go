package drbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEncode: a request byte by byte, as drbd_adm_prepare and the policies of genl_magic_struct.h read it.
func TestEncode(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are those of a little-endian machine")
	}
	r := request{command: cmdNewMinor, minor: 3, flags: unix.NLM_F_ACK, groups: []group{{groupContext, []attribute{u32(1, 7), text(2, "r0")}}}}
	want := []byte{
		52, 0, 0, 0, 33, 0, 5, 0, 9, 0, 0, 0, 0, 0, 0, 0, // nlmsghdr: length, family, REQUEST|ACK, sequence
		5, 1, 0, 0, // genlmsghdr
		3, 0, 0, 0, 0, 0, 0, 0, // drbd_genlmsghdr
		24 - 4, 0, 2, 0x80, // DRBD_NLA_CFG_CONTEXT, nested
		8, 0, 1, 0x40, 7, 0, 0, 0, // ctx_volume, mandatory
		7, 0, 2, 0x40, 'r', '0', 0, 0, // ctx_resource_name with its NUL, padded
	}
	want[0] = byte(len(want))
	if got := r.encode(33, 9); !bytes.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestEncodeRoundTrip: what goes into a message comes out of it, at every length of padding, and without a move
// of its memory.
func TestEncodeRoundTrip(t *testing.T) {
	for n := range 9 {
		r := request{command: 1, minor: noMinor, groups: []group{{5, []attribute{text(1, strings.Repeat("x", n)), u8(2, true)}}, {6, nil}}}
		b := r.encode(20, 1)
		if len(b) != cap(b) {
			t.Errorf("%d bytes in a buffer of %d: it was moved", len(b), cap(b))
		}
		all, err := messages(b)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		a, err := decodeReply(all[0].body)
		if err != nil || len(a.groups) != 2 || a.minor != noMinor {
			t.Fatalf("%+v %v", a, err)
		}
		var values []string
		if err := attributes(a.groups[5], func(number uint16, value []byte) error {
			values = append(values, fmt.Sprint(number, value))
			return nil
		}); err != nil || len(values) != 2 || values[1] != "2 [1]" {
			t.Errorf("%v %v", values, err)
		}
	}
}

func status(fields ...attribute) reply {
	b := request{minor: 4, groups: []group{{groupContext, []attribute{u32(1, 2), text(2, "r0")}},
		{groupNet, []attribute{text(1, "hunter2")}}, {groupState, fields}}}.encode(1, 1)
	r, err := decodeReply(b[netlinkHeader:])
	if err != nil {
		panic(err)
	}
	return r
}

func TestDecodeStatus(t *testing.T) {
	word := uint32(RolePrimary) | uint32(RoleSecondary)<<2 | uint32(SyncSource)<<4 | uint32(UpToDate)<<9 | uint32(Inconsistent)<<13
	uuids := make([]byte, 32)
	for i := range 4 {
		native.PutUint64(uuids[8*i:], uint64(10+i))
	}
	got, err := decodeStatus(status(u32(2, word), u64(3, 2048), attribute{7, uuids}, u64(10, 3), u64(11, 5), u64(15, 8), u64(16, 9)))
	want := Status{Minor: 4, Volume: 2, Resource: "r0", State: State{Role: RolePrimary, Peer: RoleSecondary, Connection: SyncSource, Disk: UpToDate, PeerDisk: Inconsistent},
		Bytes: 1 << 20, Generations: &Generations{10, 11, [2]uint64{12, 13}}, OutOfSync: 3 << 12, ResyncTotal: 5 << 12, Sent: 4096, Received: 9 * 512}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, "hunter2") {
		t.Errorf("the status has the secret: %s", text)
	}
	for name, bad := range map[string]reply{
		"no state":         status(u64(3, 1)),
		"short state":      status(u8(2, true)),
		"short generation": status(u32(2, word), u64(7, 1)),
		"overflow":         status(u32(2, word), u64(10, 1<<60)),
	} {
		if s, err := decodeStatus(bad); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
	for bit, want := range map[int]bool{17: true, 18: false, 20: false, 21: true, 22: true} {
		if s := decodeState(1 << bit); s.Suspended != want {
			t.Errorf("bit %d: %+v", bit, s)
		}
	}
}

func TestCodes(t *testing.T) {
	for code, want := range map[int32]error{127: ErrNotFound, 158: ErrNotFound, 165: ErrUnclean, -1: ErrTwoPrimaries, -2: ErrNotUpToDate, -12: ErrInUse, 114: ErrInUse} {
		if err := error(&CodeError{"x", code, nil}); !errors.Is(err, want) {
			t.Errorf("%d: %v", code, err)
		}
	}
	for code, ok := range map[int32]bool{101: true, 1: true, 2: true, 4: true, 0: false, 5: false, -1: false, 100: false, 102: false} {
		if succeeded(code) != ok {
			t.Errorf("%d succeeded: %v", code, !ok)
		}
	}
	if e := (&CodeError{"attach", 999, []string{"a", "b"}}).Error(); e != "drbd: attach: unexpected answer (code 999): a; b" {
		t.Error(e)
	}
}

func TestSecret(t *testing.T) {
	for _, bad := range []string{"", strings.Repeat("x", 64), "a\x00b"} {
		if _, err := NewSecret(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, err := NewSecret(strings.Repeat("s", 63))
	if err != nil {
		t.Fatal(err)
	}
	p := Peer{Secret: s}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if text := fmt.Sprintf(format, s) + fmt.Sprintf(format, p) + fmt.Sprintf(format, &p); strings.Contains(text, "sss") || strings.Contains(text, "7373") {
			t.Errorf("%s prints the secret: %s", format, text)
		}
	}
	if b, err := json.Marshal(p); err == nil {
		t.Errorf("a secret has a JSON form: %s", b)
	}
}

func TestPeerFields(t *testing.T) {
	secret, _ := NewSecret("hunter2")
	good := Peer{Local: netip.MustParseAddrPort("10.0.0.1:7789"), Remote: netip.MustParseAddrPort("10.0.0.2:7790"), Protocol: ProtocolC, Secret: secret}
	fields, err := good.fields()
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint16][]byte{}
	for _, f := range fields {
		got[f.number] = f.value
	}
	if string(got[2]) != "sha256\x00" || string(got[1]) != "hunter2\x00" || native.Uint32(got[6]) != 3 || got[25][0] != 0 {
		t.Errorf("%v", got)
	}
	for _, number := range []uint16{17, 18, 19} { // after_sb_*: DRBD must not choose a loser by itself
		if v, ok := got[number]; !ok || native.Uint32(v) != 0 {
			t.Errorf("split brain policy %d is %v", number, v)
		}
	}
	for name, change := range map[string]func(*Peer){
		"no secret": func(p *Peer) { p.Secret = Secret{} },
		"protocol":  func(p *Peer) { p.Protocol = 2 },
		"families":  func(p *Peer) { p.Remote = netip.MustParseAddrPort("[fd00::1]:1") },
		"no local":  func(p *Peer) { p.Local = netip.AddrPort{} },
	} {
		p := good
		change(&p)
		if _, err := p.fields(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSockaddr(t *testing.T) {
	for a, want := range map[string]int{"10.0.0.1:7789": 16, "[::ffff:10.0.0.1]:7789": 16, "[fd00::1]:7789": 28} {
		b := sockaddr(netip.MustParseAddrPort(a))
		if len(b) != want || binary.BigEndian.Uint16(b[2:]) != 7789 {
			t.Errorf("%s: %v", a, b)
		}
	}
}

func superblock(magic, flags uint32) []byte {
	b := make([]byte, SuperblockBytes)
	binary.BigEndian.PutUint64(b, 2048)
	for i := range uint64(4) {
		binary.BigEndian.PutUint64(b[8+8*i:], 20+i)
	}
	binary.BigEndian.PutUint32(b[56:], flags)
	binary.BigEndian.PutUint32(b[60:], magic)
	binary.BigEndian.PutUint32(b[80:], 4096)
	return b
}

func TestDecodeMetadata(t *testing.T) {
	got, err := DecodeMetadata(superblock(magic08, flagClean|flagUpToDate|flagConsistent))
	want := Metadata{Bytes: 1 << 20, Generations: Generations{20, 21, [2]uint64{22, 23}}, Clean: true, Consistent: true, UpToDate: true}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for _, unclean := range [][]byte{superblock(magicUnclean, flagClean), superblock(magic08, 0)} {
		if m, err := DecodeMetadata(unclean); err != nil || m.Clean {
			t.Errorf("%+v %v", m, err)
		}
	}
	for _, none := range [][]byte{make([]byte, 4096), superblock(magic09, 0)} {
		if _, err := DecodeMetadata(none); !errors.Is(err, ErrNoMetadata) {
			t.Error(err)
		}
	}
	if _, err := DecodeMetadata(make([]byte, 512)); err == nil {
		t.Error("512 bytes are a superblock")
	}
}

// TestMetadataBytes has sizes that drbdmeta used in the lab (100, 304 and 8 MiB).
func TestMetadataBytes(t *testing.T) {
	for disk, want := range map[uint64]uint64{8 << 20: 40 << 10, 100 << 20: 40 << 10, 128 << 20: 40 << 10, 304 << 20: 48 << 10, 128<<20 + 4096: 44 << 10, 1 << 40: 36<<10 + 32<<20} {
		if got := MetadataBytes(disk); got != want {
			t.Errorf("%d: %d, want %d", disk, got, want)
		}
	}
}

// TestDiskFor: the smallest disk that holds a device and its metadata.
func TestDiskFor(t *testing.T) {
	for _, unit := range []uint64{4096, 1 << 20, 4 << 20} {
		for _, data := range []uint64{1, 4096, 256 << 10, 1 << 20, 128<<20 - 40<<10, 128 << 20, 1 << 40, 1<<40 - 32<<20 - 36<<10, 20_000_000_000} {
			device := DeviceFor(data)
			disk := DiskFor(device, unit)
			if !ValidSize(device) || device < data || device > data+8192 {
				t.Errorf("data %d: device %d", data, device)
			}
			if room := func(disk uint64) bool { return device+MetadataBytes(disk) <= disk }; disk%unit != 0 || !room(disk) || room(disk-unit) {
				t.Errorf("data %d: disk %d in units of %d", data, disk, unit)
			}
		}
	}
}

func TestValidSize(t *testing.T) {
	for bytes, want := range map[uint64]bool{0: false, 4096: true, 4097: false, 256 << 10: false, 256<<10 + 4096: true, 96 << 20: false, 96<<20 - 4096: true} {
		if ValidSize(bytes) != want || (checkSize(bytes) == nil) != want {
			t.Errorf("%d: %v", bytes, !want)
		}
	}
	c := &Client{fd: -1}
	if err := c.Attach(context.Background(), 1, Backing{Bytes: 96 << 20}); err == nil || !strings.Contains(err.Error(), "256 KiB") {
		t.Error(err)
	}
	if err := c.Resize(context.Background(), 1, 96<<20); err == nil || !strings.Contains(err.Error(), "256 KiB") {
		t.Error(err)
	}
}

// TestOpenWithoutModule: a kernel without DRBD is recognized. The lab has one with it.
func TestOpenWithoutModule(t *testing.T) {
	c, err := Open()
	if err == nil {
		defer c.Close()
		if _, err := c.List(context.Background()); err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Error(err)
	}
}

// FuzzDecode: no message from the socket or superblock from a disk makes the decoders panic.
func FuzzDecode(f *testing.F) {
	f.Add(request{minor: 4, groups: []group{{groupContext, []attribute{u32(1, 2), text(2, "r0")}}, {groupState, []attribute{u32(2, 1)}}}}.encode(1, 1))
	f.Add(superblock(magic08, flagClean))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DecodeMetadata(b)
		all, _ := messages(b)
		for _, m := range all {
			_, _, _ = decodeFamily(m.body)
			if r, err := decodeReply(m.body); err == nil {
				_, _ = decodeStatus(r)
			}
		}
	})
}
