package drbd

import (
	"fmt"
	"math"
)

// bitBytes is the part of a device that one bit of the bitmap stands for (BM_BLOCK_SIZE of
// drivers/block/drbd/drbd_int.h).
const bitBytes = 4096

const sectorBytes = 512

// Generations are the identifiers of the generations of the data, from which DRBD computes the direction of a
// resynchronization: the current one, the one at which the bitmap starts, and two older ones.
// Bit 0 of the current one is set while the device is primary.
type Generations struct {
	Current, Bitmap uint64
	History         [2]uint64
}

// Status is what the kernel reports of one device. It never contains the shared secret, which the kernel
// includes in its answer to root.
type Status struct {
	Minor, Volume uint32
	Resource      string
	State         State
	// Bytes is the size of the device, 0 while it has neither a disk nor a peer.
	Bytes uint64
	// Generations are those of the local disk, nil without one.
	Generations *Generations
	// OutOfSync is how much differs from the peer, or may; in bytes. It is unknown, and 0, without a local disk.
	OutOfSync uint64
	// ResyncTotal is how much the running resynchronization has to copy, in bytes; 0 when none runs.
	ResyncTotal uint64
	// Sent and Received count the bytes that went over the network since the device was made.
	Sent, Received uint64
}

// New reports whether the metadata of the local disk were never in use. In the role of primary, the lowest bit of the generation is set.
func (s *Status) New() bool {
	return s.Generations != nil && Metadata{Generations: Generations{Current: s.Generations.Current &^ 1}}.New()
}

// Demoted reports whether the metadata of the local disk say of a secondary that it was one when it was last in use: not a primary whose
// machine stopped. Generations of what it wrote without its peer, which it had as a primary, say nothing (drbd_set_role of
// drivers/block/drbd/drbd_nl.c).
func (s *Status) Demoted() bool {
	return s.Generations != nil && !s.New() && s.Generations.Current&1 == 0 && s.Generations.Bitmap == 0
}

// decodeStatus reads the answer to cmdGetStatus.
func decodeStatus(r reply) (Status, error) {
	s := Status{Minor: r.minor}
	err := attributes(r.groups[groupContext], func(number uint16, value []byte) (err error) {
		switch number {
		case 1:
			s.Volume, err = asU32(value)
		case 2:
			s.Resource = nulTerminated(value)
		}
		return err
	})
	if err != nil {
		return Status{}, err
	}
	state := false
	err = attributes(r.groups[groupState], func(number uint16, value []byte) (err error) {
		switch number {
		case 2:
			var w uint32
			w, err = asU32(value)
			s.State, state = decodeState(w), true
		case 3:
			s.Bytes, err = asBytes(value, sectorBytes)
		case 7:
			if len(value) != 4*8 { // UI_SIZE
				return fmt.Errorf("%w: %d bytes of generation identifiers", errMalformed, len(value))
			}
			s.Generations = &Generations{native.Uint64(value), native.Uint64(value[8:]), [2]uint64{native.Uint64(value[16:]), native.Uint64(value[24:])}}
		case 10:
			s.OutOfSync, err = asBytes(value, bitBytes)
		case 11:
			s.ResyncTotal, err = asBytes(value, bitBytes)
		case 15:
			s.Sent, err = asBytes(value, sectorBytes)
		case 16:
			s.Received, err = asBytes(value, sectorBytes)
		}
		return err
	})
	if err == nil && !state {
		err = fmt.Errorf("%w: status of minor %d without its state", errMalformed, r.minor)
	}
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

func asU32(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, fmt.Errorf("%w: %d bytes for a number of 4", errMalformed, len(b))
	}
	return native.Uint32(b), nil
}

// asBytes reads a count of units.
func asBytes(b []byte, unit uint64) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: %d bytes for a number of 8", errMalformed, len(b))
	}
	n := native.Uint64(b)
	if n > math.MaxUint64/unit {
		return 0, fmt.Errorf("%w: a count of %d", errMalformed, n)
	}
	return n * unit, nil
}
