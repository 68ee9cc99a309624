package addons

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// direct calls a server as gRPC does, without a socket in between.
type direct struct {
	*Server
	calls []directCall
}

type directCall struct {
	grpc.MethodDesc
	owner any
}

func newDirect(volumes Volumes) direct {
	e := &engine{}
	e.set(drivebay.Snapshot{Seq: 1})
	d := direct{Server: New(e, Options{Name: "drivebay.io", Version: "v9", Volumes: volumes, Log: slog.New(slog.DiscardHandler)})}
	for desc, owner := range d.services() {
		for _, m := range desc.Methods {
			d.calls = append(d.calls, directCall{m, owner})
		}
	}
	slices.SortFunc(d.calls, func(a, b directCall) int { return strings.Compare(a.MethodName, b.MethodName) })
	return d
}

// call sends bytes to the n-th call; wrong: they are none of its requests, which
// gRPC refuses before we see them.
func (d direct) call(ctx context.Context, n int, b []byte) (resp any, wrong bool, err error) {
	c := d.calls[n]
	resp, err = c.Handler(c.owner, ctx, func(into any) error {
		err := proto.Unmarshal(b, into.(proto.Message))
		wrong = err != nil
		return err
	}, d.guard)
	return resp, wrong, err
}

// hold says what is wrong with how a call ended, whatever was sent.
func hold(resp any, err error) error {
	switch code := status.Code(err); {
	case code == codes.Internal || code == codes.Unknown || code == codes.DataLoss:
		return fmt.Errorf("ends with %w", err)
	case err != nil:
		return nil
	}
	if r, ok := resp.(*healer.NodeHealerResponse); ok && r.Message == "" {
		return fmt.Errorf("no message: %v", r)
	}
	if size := proto.Size(resp.(proto.Message)); size > maxMessage {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	return nil
}

func FuzzCalls(f *testing.F) {
	seeds := []proto.Message{
		&healer.NodeHealerRequest{VolumeId: "there", VolumePath: "/v", StagingTargetPath: "/s", VolumeCapability: mountOf("ext4"), Secrets: map[string]string{"passphrase": "x"}, VolumeContext: map[string]string{"csi.storage.k8s.io/a": "b"}},
		&reclaimspace.NodeReclaimSpaceRequest{VolumeId: "raw", VolumePath: "/v", VolumeCapability: blockUse()},
		&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "well", Parameters: map[string]string{"storage.kubernetes.io/a": "b"}},
		&encryptionkeyrotation.EncryptionKeyRotateRequest{VolumeId: "sealed", EncryptionKey: "next", Secrets: map[string]string{"passphrase": "open, sesame"}},
	}
	calls := len(newDirect(there()).calls)
	for n := range calls {
		for _, m := range append(seeds, nil) {
			b, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(n), b)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		d := newDirect(there())
		resp, wrong, err := d.call(t.Context(), int(n)%calls, b)
		if wrong {
			return
		}
		if err := hold(resp, err); err != nil {
			t.Errorf("%s: %v", d.calls[int(n)%calls].MethodName, err)
		}
	})
}

// Every call that the services have is one of ours.
func TestNothingIsLeftOut(t *testing.T) {
	d := newDirect(there())
	if len(d.calls) != 7 {
		t.Errorf("%d calls", len(d.calls))
	}
	for n, c := range d.calls {
		if _, _, err := d.call(t.Context(), n, nil); status.Code(err) == codes.Unimplemented {
			t.Errorf("%s: %v", c.MethodName, err)
		}
	}
}
