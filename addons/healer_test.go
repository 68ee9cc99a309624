package addons

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func mountOf(fs string) *wire.VolumeCapability {
	return &wire.VolumeCapability{AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{FsType: fs, MountFlags: []string{"password=flagword"}}}}
}

func blockUse() *wire.VolumeCapability {
	return &wire.VolumeCapability{AccessType: &wire.VolumeCapability_Block{Block: &wire.VolumeCapability_BlockVolume{}}}
}

func heal(t *testing.T, volumes Volumes, r *healer.NodeHealerRequest) (*healer.NodeHealerResponse, error) {
	t.Helper()
	_, conn, _ := rig(t, volumes)
	return healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), r)
}

// TestNodeHealerErrors has the rows of the table of errors; the row for a call that
// is pending has a test of its own.
func TestNodeHealerErrors(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		req  *healer.NodeHealerRequest
		ends error // of the engine
		want codes.Code
		says string
	}{
		"nothing":                 {&healer.NodeHealerRequest{}, nil, codes.InvalidArgument, "volume_id"},
		"no volume_id":            {&healer.NodeHealerRequest{VolumePath: "/v"}, nil, codes.InvalidArgument, "volume_id"},
		"no volume_path":          {&healer.NodeHealerRequest{VolumeId: "there"}, nil, codes.InvalidArgument, "volume_path"},
		"a relative path":         {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "v"}, nil, codes.InvalidArgument, "volume_path"},
		"a path with a zero":      {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v\x00"}, nil, codes.InvalidArgument, "volume_path"},
		"a relative staging path": {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", StagingTargetPath: "s"}, nil, codes.InvalidArgument, "staging_target_path"},
		"too long an id":          {&healer.NodeHealerRequest{VolumeId: long, VolumePath: "/v"}, nil, codes.InvalidArgument, "volume_id"},
		"too long a path":         {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/" + long}, nil, codes.InvalidArgument, "volume_path"},
		"too many secrets":        {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", Secrets: map[string]string{"a": long}}, nil, codes.InvalidArgument, "secrets"},
		"no block device":         {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", VolumeCapability: blockUse()}, nil, codes.InvalidArgument, "the request is for a block device"},
		"no filesystem":           {&healer.NodeHealerRequest{VolumeId: "raw", VolumePath: "/v", VolumeCapability: mountOf("")}, nil, codes.InvalidArgument, "without a filesystem"},
		"another filesystem":      {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", VolumeCapability: mountOf("xfs")}, nil, codes.InvalidArgument, "ext4"},
		"another volume_context":  {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", VolumeContext: map[string]string{"pool": "1"}}, nil, codes.InvalidArgument, "volume_context"},
		"no such volume":          {&healer.NodeHealerRequest{VolumeId: "elsewhere", VolumePath: "/v", VolumeCapability: blockUse()}, nil, codes.NotFound, "elsewhere"},
		"a wrong secret":          {&healer.NodeHealerRequest{VolumeId: "sealed", VolumePath: "/v", Secrets: map[string]string{"passphrase": "open, barley"}}, nil, codes.Unauthenticated, "sealed"},
		"no secret":               {&healer.NodeHealerRequest{VolumeId: "sealed", VolumePath: "/v"}, nil, codes.Unauthenticated, "sealed"},
		"not supported":           {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}, drivebay.ErrNoSupport, codes.Unimplemented, ""},
		"refused":                 {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}, drivebay.ErrRefused, codes.FailedPrecondition, ""},
		"no answer in time":       {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}, drivebay.ErrTimeout, codes.DeadlineExceeded, ""},
		"whatever else":           {&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}, errors.New("a gremlin"), codes.Unknown, "a gremlin"},
	} {
		t.Run(name, func(t *testing.T) {
			m := there()
			if c.ends != nil {
				m.fails.Store(new(fmt.Errorf("volume there: %w", c.ends)))
			}
			resp, err := heal(t, m, c.req)
			if status.Code(err) != c.want || !strings.Contains(fmt.Sprint(err), c.says) || strings.Contains(fmt.Sprint(err), "open, barley") {
				t.Errorf("%v, %v, want %v", resp, err, c.want)
			}
			if c.want == codes.InvalidArgument && m.last() != nil {
				t.Errorf("the engine was asked: %+v", m.last())
			}
		})
	}
}

// On a machine without volumes the call is not there; before they are listed nobody
// can say that one does not exist.
func TestNodeHealerUnavailable(t *testing.T) {
	if _, err := heal(t, nil, &healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("without volumes: %v", err)
	}
	m := there()
	m.set.Store(&drivebay.VolumeSet{})
	if _, err := heal(t, m, &healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v"}); status.Code(err) != codes.Unavailable {
		t.Errorf("before the first listing: %v", err)
	}
}

func TestNodeHealerPending(t *testing.T) {
	m := there()
	m.held, m.began = make(chan struct{}), make(chan struct{}, 2)
	_, conn, _ := rig(t, m)
	call := func(id string) error {
		_, err := healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), &healer.NodeHealerRequest{VolumeId: id, VolumePath: "/v"})
		return err
	}
	first, other := make(chan error), make(chan error)
	go func() { first <- call("there") }()
	<-m.began
	if err := call("there"); status.Code(err) != codes.Aborted {
		t.Errorf("a second call for it: %v", err)
	}
	go func() { other <- call("well") }()
	<-m.began // another volume does not wait
	close(m.held)
	if err := errors.Join(<-first, <-other); err != nil {
		t.Error(err)
	}
	go func() { <-m.began }()
	if err := call("there"); err != nil {
		t.Errorf("once it has ended: %v", err)
	}
}

// Every field gets to the engine.
func TestNodeHealerAsks(t *testing.T) {
	m, yes, no := there(), true, false
	secrets := map[string]string{"passphrase": "open, sesame"}
	kubernetes := map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "x", "csi.storage.k8s.io/pod.name": "p"}
	for _, c := range []struct {
		req  *healer.NodeHealerRequest
		want drivebay.HealRequest
	}{
		{&healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v"}, drivebay.HealRequest{Volume: "well", Path: "/v"}},
		{&healer.NodeHealerRequest{VolumeId: "sealed", VolumePath: "/v", StagingTargetPath: "/s", VolumeCapability: mountOf("ext4"), Secrets: secrets, VolumeContext: kubernetes},
			drivebay.HealRequest{Volume: "sealed", Path: "/v", Staging: "/s", Block: &no, Options: []string{"password=flagword"}, Secrets: secrets}},
		{&healer.NodeHealerRequest{VolumeId: "raw", VolumePath: "/v", VolumeCapability: blockUse()}, drivebay.HealRequest{Volume: "raw", Path: "/v", Block: &yes}},
		{&healer.NodeHealerRequest{VolumeId: "raw", VolumePath: "/v", VolumeCapability: &wire.VolumeCapability{}}, drivebay.HealRequest{Volume: "raw", Path: "/v"}},
	} {
		if _, err := heal(t, m, c.req); err != nil {
			t.Error(err)
		}
		if got := m.last(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("asked for %+v, want %+v", got, c.want)
		}
	}
}
