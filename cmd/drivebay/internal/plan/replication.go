package plan

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// EnableReplication returns the plan of the replication of a volume.
func EnableReplication(r drivebay.ReplicationRequest) OfVolume {
	return volume(func(f Facts, v *drivebay.VolumeView, p *Plan) {
		if v.Replicates() {
			p.add("do nothing, if the peer is %s and the rest is the same: the volume is replicated to %s", r.Peer, v.Replication.Peer)
			return
		}
		p.refused = f.mayWrite(v.Location)
		for _, s := range f.Volumes.Snapshots {
			if s.Source == v.ID {
				p.refused = fmt.Errorf("%s: %w: it has snapshots", render.CalledVolume(&v.Volume), drivebay.ErrNoSupport)
			}
		}
		p.notInUse(v)
		p.add("grow the volume on drive %s by the room for the metadata of DRBD", f.on(v.Location))
		p.add("write the metadata at its end, and use the volume through a DRBD device from then on")
		if r.HoldsData {
			p.add("keep the data of the volume, and copy them to the peer when it connects")
		} else {
			p.add("replace the data of the volume by those of the peer when it connects")
		}
		p.add("connect %s to %s with protocol %s", r.Local, r.Peer, r.Protocol)
	})
}

// notInUse refuses a plan for a volume that is in use.
func (p *Plan) notInUse(v *drivebay.VolumeView) {
	if v.Rest() != drivebay.CSICreated {
		p.refused = fmt.Errorf("%s: %w: it is in use: end the pod that uses it first", render.CalledVolume(&v.Volume), drivebay.ErrRefused)
	}
}

// replicated returns the plan of a command about a volume that is replicated.
func replicated(decide func(*drivebay.VolumeView, *Plan)) OfVolume {
	return volume(func(_ Facts, v *drivebay.VolumeView, p *Plan) {
		if v.Replication == nil || v.Replication.Ended {
			p.refused = fmt.Errorf("%s: %w: it is not replicated", render.CalledVolume(&v.Volume), drivebay.ErrRefused)
			return
		}
		decide(v, p)
	})
}

// DisableReplication is the plan of the end of a replication.
var DisableReplication = volume(func(_ Facts, v *drivebay.VolumeView, p *Plan) {
	if v.Replication == nil || v.Replication.Ended {
		p.add("do nothing: the volume is not replicated")
		return
	}
	p.notInUse(v)
	p.add("disconnect the volume from %s and remove its DRBD device", v.Replication.Peer)
	p.add("wipe the metadata of DRBD at its end; the data of this side stay")
	if !v.Replication.Primary {
		p.note = fmt.Sprintf("if the copy from the peer is not complete, the volume can be used only after `drivebay volume accept-loss %s --yes`", v.ID)
	}
})

// Promote returns the plan of a promotion.
func Promote(force bool) OfVolume {
	return replicated(func(v *drivebay.VolumeView, p *Plan) {
		switch {
		case v.Replication.Primary:
			p.add("do nothing: the volume is primary on this side")
		case force:
			p.add("make this side primary, also if the peer does not answer")
			p.add("declare the data of this side to be the current ones")
			p.note = "what the peer has, and this side does not, is discarded when the two sides are synchronized again"
		default:
			p.add("make this side primary, if the peer is secondary and the data of this side are the current ones")
		}
	})
}

// Demote is the plan of a demotion.
var Demote = replicated(func(v *drivebay.VolumeView, p *Plan) {
	if !v.Replication.Primary {
		p.add("do nothing: the volume is secondary on this side")
		return
	}
	p.notInUse(v)
	p.add("make this side secondary: the volume can be promoted on the other side, and is not mounted on this one")
})

// Resync returns the plan of a resynchronization.
func Resync(force bool) OfVolume {
	return replicated(func(v *drivebay.VolumeView, p *Plan) {
		if v.Replication.Primary {
			p.refused = fmt.Errorf("%s: %w: it is primary on this side: demote it first", render.CalledVolume(&v.Volume), drivebay.ErrRefused)
		}
		p.add("connect to %s, unless the two sides are connected or have the same data", v.Replication.Peer)
		if force {
			p.add("after a split brain, replace what was written on this side alone by the data of the peer")
		}
	})
}
