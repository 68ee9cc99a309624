package drbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// The metadata are at the end of the disk that they describe ("internal"): the superblock in the last 4 KiB, the activity
// log of 32 KiB before it, and the bitmap before that (drbd_md_set_sector_offsets of drivers/block/drbd/drbd_nl.c,
// DRBD_MD_INDEX_INTERNAL). The volume's data keep their place at the start, and the disk has to be larger than they are.
//
// The program drbdmeta writes the metadata (it needs no secret), and this package only reads them. The kernel marks
// metadata as unclean with its first write and attaches none that are (drbd_md_write and drbd_md_read of
// drivers/block/drbd/drbd_main.c): before each attach but the first, the extents of the activity log have to be marked
// in the bitmap. That is drbdmeta's work in any case, and a second author of the bitmap could only lose data.
//
// TestLabDRBDInternal shows on drbd-utils 9.22:
//   - drbdmeta needs --force, as it asks else, and with --force drbdmeta writes to a disk that is in use. It stops
//     only if the minor of the command has a disk. The caller has to know that nothing uses the disk.
//   - drbdmeta remembers the size of a disk in LastKnown. Where it finds no metadata at the end of the disk, a later command
//     moves those from the end of that size, even if the kernel moved the current ones to another place (Resize) and
//     these are what it left: an old size, and a bitmap that misses what was written since. The caller has to remove the
//     file before each command, or to write the size into it at whose end the metadata are (MovedFrom).
//   - While the disk is attached, the page cache may show old metadata: the superblock has to be read from the medium.

// CreateMetadata is the command that writes new metadata: DRBD then knows nothing of the disk's content, and copies
// all of it from the side that an operator makes primary. drbdmeta refuses a disk whose ext4 or xfs reaches into the
// metadata, and overwrites any other content there.
func CreateMetadata(minor uint32, disk string) []string { return drbdmeta(minor, disk, "create-md") }

// ApplyActivityLog is the command that has to run before a disk is attached. It changes nothing where nothing is to
// be done.
func ApplyActivityLog(minor uint32, disk string) []string { return drbdmeta(minor, disk, "apply-al") }

// WipeMetadata is the command after which the disk has no metadata any more. While it has, blkid and mount take it for a
// disk of DRBD, whatever is at its start.
func WipeMetadata(minor uint32, disk string) []string { return drbdmeta(minor, disk, "wipe-md") }

func drbdmeta(minor uint32, disk, command string) []string {
	return []string{"drbdmeta", "--force", strconv.FormatUint(uint64(minor), 10), "v08", disk, "internal", command}
}

// LastKnown is the file in which drbdmeta remembers the size of the disk of a minor.
func LastKnown(minor uint32) string {
	return "/var/lib/drbd/drbd-minor-" + strconv.FormatUint(uint64(minor), 10) + ".lkbd"
}

// MovedFrom is the content of LastKnown with which the next command moves the metadata from the end of a disk of that
// size to the end of the disk as it is: it grew, and the daemon ended before the kernel moved them.
func MovedFrom(size uint64) []byte { return []byte(strconv.FormatUint(size, 10) + "\n") }

const (
	superblockAndLog = 36 << 10  // MD_4kB_SECT and MD_32kB_SECT of drivers/block/drbd/drbd_int.h
	bitmapUnit       = 4096      // of the room for the bitmap,
	bitmapUnitDisk   = 128 << 20 // and the part of a disk that it stands for
)

// SuperblockBytes is what DecodeMetadata needs: the last bytes of the disk.
const SuperblockBytes = 4096

// MetadataBytes is how much of the end of a disk of that size the metadata take.
func MetadataBytes(disk uint64) uint64 {
	return superblockAndLog + (disk+bitmapUnitDisk-1)/bitmapUnitDisk*bitmapUnit
}

// DiskFor is the smallest whole number of units that a disk needs for a device of that size and its metadata.
func DiskFor(device, unit uint64) uint64 {
	disk := (device + unit - 1) / unit * unit
	for disk < device+MetadataBytes(disk) {
		disk += unit
	}
	return disk
}

// DeviceFor is the smallest size of a device that holds so many bytes and that the kernel replicates to its end.
func DeviceFor(data uint64) uint64 {
	device := (data + bitBytes - 1) / bitBytes * bitBytes
	if !ValidSize(device) {
		device += bitBytes
	}
	return device
}

// DeviceIn is the largest valid size of a device on a disk of that size.
func DeviceIn(disk uint64) uint64 {
	n := (disk - MetadataBytes(disk)) / bitBytes * bitBytes
	if !ValidSize(n) {
		n -= bitBytes
	}
	return n
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

// Medium is what metadata can be on.
type Medium interface {
	Size() uint64
	ReadMedium(p []byte, off int64) (int, error)
}

// ReadMetadata reads the metadata at the end of a disk, or at an end that it had. The kernel writes them past the page cache.
func ReadMetadata(disk Medium, end uint64) (Metadata, error) {
	if end < SuperblockBytes || end > disk.Size() {
		return Metadata{}, ErrNoMetadata
	}
	b := make([]byte, SuperblockBytes)
	if _, err := disk.ReadMedium(b, int64(end-SuperblockBytes)); err != nil {
		return Metadata{}, err
	}
	return DecodeMetadata(b)
}

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
