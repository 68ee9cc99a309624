package drbd

import (
	"encoding/binary"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
)

// Numbers of include/linux/drbd.h.
const (
	magicClean   = 0x83740267 + 4
	magicUnclean = 0x83740267 + 5

	flagConsistent = 1 << 0
	flagPrimary    = 1 << 1
	flagUpToDate   = 1 << 4
	flagClean      = 1 << 7

	justCreated = 4
	bitBytes    = 4096
	superBytes  = 4096
	logBytes    = 32 << 10
)

// superblock is struct meta_data_on_disk of drivers/block/drbd/drbd_main.c.
type superblock struct {
	sectors uint64
	uuids   [4]uint64

	clean, consistent, upToDate, primary bool
}

func (m *superblock) encode() []byte {
	b, be := make([]byte, superBytes), binary.BigEndian
	be.PutUint64(b, m.sectors)
	for i, u := range m.uuids {
		be.PutUint64(b[8+8*i:], u)
	}
	flags, magic := uint32(0), uint32(magicUnclean)
	for flag, is := range map[uint32]bool{flagConsistent: m.consistent, flagPrimary: m.primary, flagUpToDate: m.upToDate, flagClean: m.clean} {
		if is {
			flags |= flag
		}
	}
	if m.clean {
		magic = magicClean
	}
	be.PutUint32(b[56:], flags)
	be.PutUint32(b[60:], magic)
	be.PutUint32(b[80:], bitBytes)
	return b
}

// readSuperblock reads the metadata of a disk that ends at end; false: it has none there.
func readSuperblock(d *block.Device, end uint64) (m superblock, ok bool) {
	if end < superBytes || end > d.Length() {
		return m, false
	}
	b, be := make([]byte, superBytes), binary.BigEndian
	d.Read(b, end-superBytes)
	magic, flags := be.Uint32(b[60:]), be.Uint32(b[56:])
	if magic != magicClean && magic != magicUnclean {
		return m, false
	}
	m.sectors = be.Uint64(b)
	for i := range m.uuids {
		m.uuids[i] = be.Uint64(b[8+8*i:])
	}
	m.clean = magic == magicClean && flags&flagClean != 0
	m.consistent, m.primary, m.upToDate = flags&flagConsistent != 0, flags&flagPrimary != 0, flags&flagUpToDate != 0
	return m, true
}

// bitmapAt is where the bitmap of a disk that ends at end begins.
func bitmapAt(end uint64) uint64 { return end - api.MetadataBytes(end) }

// readBitmap reads the bits of so many pages.
func readBitmap(d *block.Device, end, pages uint64) bitmap {
	b := newBitmap(pages)
	d.Read(b, bitmapAt(end))
	return b.resized(pages)
}

// moveMetadata copies the metadata from the end of a disk that it had to another, and its bitmap.
func moveMetadata(d *block.Device, from, to uint64) error {
	room := min(api.MetadataBytes(from), api.MetadataBytes(to))
	bits := make([]byte, room-superBytes-logBytes)
	d.Read(bits, bitmapAt(from))
	if err := d.Zero(bitmapAt(to), api.MetadataBytes(to)); err != nil {
		return err
	}
	if err := d.Write(bits, bitmapAt(to)); err != nil {
		return err
	}
	super := make([]byte, superBytes)
	d.Read(super, from-superBytes)
	return d.Write(super, to-superBytes)
}
