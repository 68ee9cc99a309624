package drbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// The program drbdmeta writes the metadata (it needs no secret), and this package only reads them. The kernel marks
// metadata as unclean with its first write and attaches none that are (drbd_md_write and drbd_md_read of
// drivers/block/drbd/drbd_main.c): before each attach but the first, the extents of the activity log have to be marked
// in the bitmap. That is drbdmeta's work in any case, and a second author of the bitmap could only lose data.

// CreateMetadata is the command that writes new metadata: DRBD then knows nothing of the disk's content, and copies
// all of it from the side that an operator makes primary.
func CreateMetadata(minor uint32, device string) []string {
	return []string{"drbdmeta", "--force", strconv.FormatUint(uint64(minor), 10), "v08", device, "flex-external", "create-md"}
}

// ApplyActivityLog is the command that has to run before a disk is attached. It changes nothing where nothing is to
// be done.
func ApplyActivityLog(minor uint32, device string) []string {
	return []string{"drbdmeta", "--force", strconv.FormatUint(uint64(minor), 10), "v08", device, "flex-external", "apply-al"}
}

// The layout of external metadata: 4 KiB of superblock, 32 KiB of activity log, the bitmap
// (MD_4kB_SECT, MD_32kB_SECT of drivers/block/drbd/drbd_int.h).
const bitmapOffset = 36 << 10

// SuperblockBytes is how much of the metadata device DecodeMetadata needs.
const SuperblockBytes = 4096

// MetadataBytes is how large the metadata device of a disk has to be: one bit for every 4 KiB. The kernel
// takes the bitmap in units of 4 KiB, and refuses a device below 1 MiB ("refusing attach: md-device too small, at least
// 2048 sectors needed", min_md_device_sectors in drbd_adm_attach).
func MetadataBytes(disk uint64) uint64 {
	bits := disk/bitBytes + min(disk%bitBytes, 1)
	return max(1<<20, bitmapOffset+((bits+7)/8+4095)/4096*4096)
}

// Magic numbers of include/linux/drbd.h. DRBD 9 has metadata of its own.
const (
	magic08      = 0x83740267 + 4
	magicUnclean = 0x83740267 + 5
	magic09      = 0x83740267 + 6
)

// Flags of the superblock: MDF_* of include/linux/drbd.h.
const (
	flagConsistent     = 1 << 0
	flagPrimary        = 1 << 1
	flagFullSync       = 1 << 3
	flagUpToDate       = 1 << 4
	flagPeerOutdated   = 1 << 5
	flagCrashedPrimary = 1 << 6
	flagClean          = 1 << 7
)

// justCreated is UUID_JUST_CREATED: the current generation of new metadata.
const justCreated = 4

// Metadata are what the superblock of a disk says.
type Metadata struct {
	// Bytes is the size that both sides last agreed on, 0 in new metadata.
	Bytes       uint64
	Generations Generations
	// Clean means that the disk can be attached.
	Clean bool
	// Primary means that the device was primary when it was last in use.
	Primary      bool
	Consistent   bool
	UpToDate     bool
	PeerOutdated bool
	// FullSync means that the whole disk counts as different.
	FullSync bool
}

// ErrNoMetadata: the device holds no metadata of DRBD 8.4.
var ErrNoMetadata = errors.New("no DRBD metadata")

// DecodeMetadata reads the superblock: struct meta_data_on_disk of drivers/block/drbd/drbd_main.c, big-endian.
func DecodeMetadata(b []byte) (Metadata, error) {
	if len(b) < SuperblockBytes {
		return Metadata{}, fmt.Errorf("drbd: superblock: %d bytes, needs %d", len(b), SuperblockBytes)
	}
	be := binary.BigEndian
	magic, flags := be.Uint32(b[60:]), be.Uint32(b[56:])
	switch magic {
	case magic08, magicUnclean:
	case magic09:
		return Metadata{}, fmt.Errorf("%w of version 8.4: they are those of DRBD 9", ErrNoMetadata)
	default:
		return Metadata{}, ErrNoMetadata
	}
	if unit := be.Uint32(b[80:]); unit != bitBytes {
		return Metadata{}, fmt.Errorf("drbd: superblock: a bit of the bitmap stands for %d bytes, must be %d", unit, bitBytes)
	}
	sectors := be.Uint64(b)
	if sectors > 1<<54 {
		return Metadata{}, fmt.Errorf("drbd: superblock: a size of %d sectors", sectors)
	}
	return Metadata{
		Bytes:        sectors * sectorBytes,
		Generations:  Generations{be.Uint64(b[8:]), be.Uint64(b[16:]), [2]uint64{be.Uint64(b[24:]), be.Uint64(b[32:])}},
		Clean:        magic == magic08 && flags&flagClean != 0,
		Primary:      flags&(flagPrimary|flagCrashedPrimary) != 0,
		Consistent:   flags&flagConsistent != 0,
		UpToDate:     flags&flagUpToDate != 0,
		PeerOutdated: flags&flagPeerOutdated != 0,
		FullSync:     flags&flagFullSync != 0,
	}, nil
}

// New reports whether the disk has never been in use by DRBD.
func (m Metadata) New() bool { return m.Generations.Current == justCreated }
