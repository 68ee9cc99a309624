package mounts

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// Abandoned returns the paths that are named after the volume and in no record, and that show a
// device that is gone or is not the volume.
func (s *VolumeMounts) Abandoned() (out []drivebay.PathFacts) {
	for _, m := range s.T.NamedAfter(s.V.ID) {
		if mounttable.Carries(m, s.D) && !mounttable.IsUnlinked(m) {
			continue
		}
		at, ok := s.pathOfTarget(m.Target)
		if !ok || s.Ledger.Publishes(at.String()) {
			continue
		}
		device, possible := s.deviceIn(m)
		if !possible {
			continue
		}
		_, err := s.Machine.ReadFile("sys/class/block/" + device + "/dev")
		p := drivebay.PathFacts{Path: at.String(), Dead: device == "" || err != nil || mounttable.IsUnlinked(m)}
		if n, _ := mounttable.NameOfPath(m.Target); !p.Dead && !n.OfThis { // perhaps of a volume created with another name
			continue
		}
		if !p.Dead {
			p.Other = mounttable.What(m)
		}
		out = append(out, p)
	}
	return out
}

// heldByDead adds to the error of a mount the paths in no record whose device is gone: there an XFS is still mounted, and
// it is mounted once (xfs_uuid_mount, fs/xfs/xfs_mount.c). Unmounted, such a path would be an empty directory for its pod.
func (s *VolumeMounts) heldByDead(err error) error {
	dead := ""
	for _, p := range s.Abandoned() {
		if p.Dead {
			dead += ", " + p.Path
		}
	}
	if dead == "" {
		return err
	}
	return fmt.Errorf("%w; the device that it had before is still mounted at %s: end the pod that has it, or unmount it there with `umount`", err, dead[2:])
}
