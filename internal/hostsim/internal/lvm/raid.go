package lvm

import (
	"encoding/binary"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
)

// The kernel's record of a mirror: a superblock in the rmeta volume of each leg. The rules are those of
// drivers/md/dm-raid.c (analyse_superblocks, super_validate, attempt_restore_of_faulty_devices), tried
// with Linux 6.1 and lvm2 2.03.16:
//
//   - Of the readable legs the one with the most events is the source, whatever the others record. A
//     leg that it records as failed is copied to. Any other leg counts as in sync, without a
//     comparison.
//   - A leg that was left out is used again by every new table in which its superblock is readable.
//   - A leg that is activated without the other one records that in its superblock only at
//     deactivation.

// superblock is struct dm_raid_superblock, with the fields used here.
type superblock struct {
	events, failed uint64
	whole          bool
}

const raidMagic = 0x64526d44 // "DmRd"

func (s superblock) encode(position, legs int) []byte {
	b := make([]byte, 512)
	binary.LittleEndian.PutUint32(b, raidMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(legs))
	binary.LittleEndian.PutUint32(b[12:], uint32(position))
	binary.LittleEndian.PutUint64(b[16:], s.events)
	binary.LittleEndian.PutUint64(b[24:], s.failed)
	if s.whole {
		binary.LittleEndian.PutUint64(b[32:], ^uint64(0))
	}
	binary.LittleEndian.PutUint64(b[40:], ^uint64(0))
	binary.LittleEndian.PutUint32(b[48:], 1)
	return b
}

// superblock returns the superblock of a leg; nil if it is unreadable.
func (v *lv) superblock(i int) *superblock {
	for _, x := range []*lv{v.metas[i], v.images[i]} {
		if _, err := x.dev.Ask(block.Access{N: 512}); err != nil {
			return nil
		}
	}
	b := make([]byte, 512)
	v.metas[i].dev.Read(b, 0)
	if binary.LittleEndian.Uint32(b) != raidMagic {
		return &superblock{}
	}
	return &superblock{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:]) == ^uint64(0)}
}

// assemble starts a mirror from the readable superblocks. The copy to a leg is done at once.
func (v *lv) assemble() {
	all := make([]*superblock, len(v.images))
	source := -1
	for i := range v.images {
		v.failed[i] = true
		if all[i] = v.superblock(i); all[i] == nil || v.fresh[i] {
			continue
		}
		if source < 0 || all[i].events > all[source].events {
			source = i
		}
	}
	changed := false
	for i := range v.images { // a new mirror: the first leg is the source
		if source < 0 && all[i] != nil {
			source, changed, v.fresh[i] = i, true, false
		}
	}
	if source < 0 {
		return
	}
	v.failed[source], v.events = false, all[source].events
	for i, image := range v.images {
		if i == source || all[i] == nil {
			continue
		}
		if v.fresh[i] || !all[i].whole || all[source].failed>>i&1 == 1 {
			if _, err := image.dev.Ask(block.Access{Write: true}); err != nil {
				continue
			}
			v.group.m.AsKernel(block.WriterMirror, func() { block.CopyDevice(image.dev, 0, v.images[source].dev, 0, v.size()) })
			changed, v.fresh[i] = true, false
		}
		v.failed[i] = false
	}
	if changed {
		v.writeSuperblocks()
	}
}

// writeSuperblocks records the failed legs on all legs in use.
func (v *lv) writeSuperblocks() {
	s := superblock{whole: true}
	v.events++
	s.events = v.events
	for i, failed := range v.failed {
		if failed {
			s.failed |= 1 << i
		}
	}
	for i, failed := range v.failed {
		dev := v.metas[i].dev
		if failed || dev == nil {
			continue
		}
		if _, err := dev.Ask(block.Access{Write: true, N: 512}); err == nil {
			v.group.m.AsKernel(block.WriterMirror, func() { _ = dev.Write(s.encode(i, len(v.images)), 0) })
		}
	}
}

// PowerCut removes the devices of LVM as a power loss does: no superblock is written. Nothing may be
// mounted on them.
func (s *State) PowerCut() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, p := range s.physical {
		if p.group == nil {
			continue
		}
		for _, v := range p.group.lvs {
			if v.dev != nil && v.parent == nil {
				v.vanish()
			}
		}
	}
	s.NextBoot()
}

func (v *lv) vanish() {
	if v.dev != nil {
		v.dev.Unmap()
		v.dev = nil
	}
	for _, p := range v.parts() {
		p.vanish()
	}
}
