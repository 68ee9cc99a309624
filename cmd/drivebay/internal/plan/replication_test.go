package plan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestReplicationPlans: what a dry run of each command says, by the role of this side and the use of the volume.
func TestReplicationPlans(t *testing.T) {
	link := drivebay.ReplicationLink{Local: netip.MustParseAddrPort("10.0.0.1:1"), Peer: netip.MustParseAddrPort("10.0.0.2:1"), Protocol: "C"}
	source := drivebay.ReplicationRequest{ReplicationLink: link, HoldsData: true}
	primary := &drivebay.Replication{ReplicationLink: link, Disk: 1, Primary: true}
	secondary, ended := &drivebay.Replication{ReplicationLink: link, Disk: 1}, &drivebay.Replication{ReplicationLink: link, Disk: 1, Ended: true}
	for name, row := range map[string]struct {
		of   OfVolume
		r    *drivebay.Replication
		used bool
		want string
	}{
		"enable":               {EnableReplication(source), nil, false, "would: keep the data of the volume"},
		"enable in use":        {EnableReplication(source), nil, true, "would be refused now: volume v (data): refused: it is in use"},
		"enable target":        {EnableReplication(drivebay.ReplicationRequest{}), ended, false, "would: replace the data of the volume"},
		"enable again":         {EnableReplication(source), primary, true, "would: do nothing, if the peer is 10.0.0.2:1"},
		"disable":              {DisableReplication, primary, false, "would: wipe the metadata of DRBD"},
		"disable secondary":    {DisableReplication, secondary, false, "drivebay volume accept-loss v --yes"},
		"disable in use":       {DisableReplication, primary, true, "would be refused now"},
		"disable plain":        {DisableReplication, nil, false, "would: do nothing"},
		"disable ended":        {DisableReplication, ended, false, "would: do nothing"},
		"promote":              {Promote(false), secondary, false, "if the peer is secondary"},
		"promote by force":     {Promote(true), secondary, false, "would: declare the data of this side to be the current ones"},
		"promote primary":      {Promote(true), primary, false, "would: do nothing"},
		"promote plain":        {Promote(false), nil, false, "would be refused now: volume v (data): refused: it is not replicated"},
		"demote":               {Demote, primary, false, "would: make this side secondary"},
		"demote in use":        {Demote, primary, true, "would be refused now"},
		"demote secondary":     {Demote, secondary, false, "would: do nothing"},
		"resync":               {Resync(false), secondary, false, "would: connect to 10.0.0.2:1"},
		"resync by force":      {Resync(true), secondary, false, "replace what was written on this side alone"},
		"resync a primary":     {Resync(true), primary, false, "it is primary on this side: demote it first"},
		"resync of what ended": {Resync(false), ended, false, "it is not replicated"},
	} {
		v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v", Name: "data", CSIStatus: drivebay.CSICreated, Replication: row.r, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"a"}}}}
		if row.used {
			v.CSIStatus, v.Publications = drivebay.CSIVolumeReady, []drivebay.Publication{{Path: "/pod"}}
		}
		s := &drivebay.Snapshot{Drives: []drivebay.Drive{{ID: "a", Status: drivebay.StatusOnline, Claim: &drivebay.Claim{}}}}
		if text := row.of(Facts{Drives: s, Volumes: &drivebay.VolumeSet{Volumes: []*drivebay.VolumeView{v}}}, "v").Text("x"); !strings.Contains(text, row.want) {
			t.Errorf("%s: want %q:\n%s", name, row.want, text)
		}
	}
}
