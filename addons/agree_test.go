package addons

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/csi"
)

// condition is a VolumeCondition as `drivebay csi` prints it.
type condition struct {
	Abnormal bool
	Message  string
}

type otherCalls = csi.Volumes

// both is one engine for both servers.
type both struct {
	otherCalls // not asked
	*memory
}

func (b both) Volumes() *drivebay.VolumeSet { return b.memory.Volumes() }
func (b both) Unread() ([]string, bool)     { return b.memory.Unread() }
func (b both) Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	return b.memory.Stats(ctx, r)
}
func (b both) Capabilities() drivebay.VolumeCapabilities { return drivebay.VolumeCapabilities{} }

// TestBothAgree: after a healing, NodeHealer says of a volume what CSI says of it.
func TestBothAgree(t *testing.T) {
	long := drivebay.Condition{{Severity: drivebay.SeverityDataLoss, Reason: "FilesystemCorruption", Message: strings.Repeat("é", 600)}, broken[0]}
	m := there()
	m.mended["there"], m.mended["raw"] = nil, long
	e, conn, _ := rig(t, m)
	plugin := serve(t, csi.New(e, csi.Options{NodeID: "node-1", Volumes: both{memory: m}}))
	for _, c := range []struct {
		id       string
		abnormal bool
	}{{"there", false}, {"raw", true}, {"well", false}} {
		got, err := healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), &healer.NodeHealerRequest{VolumeId: c.id, VolumePath: "/v"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := csi.Call(t.Context(), plugin, "NodeGetVolumeStats", `{"volumeId": "`+c.id+`", "volumePath": "/v"}`)
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ VolumeCondition condition }
		if err := json.Unmarshal([]byte(out), &want); err != nil {
			t.Fatal(err)
		}
		if is := want.VolumeCondition; got.Abnormal != c.abnormal || got.Message == "" || got.Abnormal != is.Abnormal || got.Message != is.Message {
			t.Errorf("%s: %v, %q; CSI says %v", c.id, got.Abnormal, got.Message, is)
		}
	}
}
