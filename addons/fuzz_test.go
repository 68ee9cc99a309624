package addons

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
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
	return directTo(New(e, Options{Name: "drivebay.io", Version: "v9", Volumes: volumes, Log: slog.New(slog.DiscardHandler)}))
}

func directTo(s *Server) direct {
	d := direct{Server: s}
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
	}, d.guard.Intercept)
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
	if size := proto.Size(resp.(proto.Message)); size > rpc.MaxMessage {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	return nil
}

// seeds are requests that are in order, for a volume at a path.
func seeds(id, path string, use *wire.VolumeCapability) []proto.Message {
	secrets := map[string]string{"passphrase": "open, sesame"}
	return []proto.Message{
		&healer.NodeHealerRequest{VolumeId: id, VolumePath: path, StagingTargetPath: path, VolumeCapability: use, Secrets: secrets, VolumeContext: map[string]string{"csi.storage.k8s.io/a": "b"}},
		&reclaimspace.NodeReclaimSpaceRequest{VolumeId: id, VolumePath: path, VolumeCapability: use, Secrets: secrets},
		&reclaimspace.ControllerReclaimSpaceRequest{VolumeId: id, Parameters: map[string]string{"storage.kubernetes.io/a": "b"}},
		&encryptionkeyrotation.EncryptionKeyRotateRequest{VolumeId: id, VolumePath: path, EncryptionKey: "open, sesame", Secrets: secrets, VolumeCapability: use},
	}
}

func FuzzCalls(f *testing.F) {
	all := append(seeds("there", "/v", mountOf("ext4")), seeds("sealed", "/v", mountOf(""))...)
	all = append(append(all, seeds("raw", "/v", blockUse())...), nil)
	calls := len(newDirect(there()).calls)
	for n := range calls {
		for _, m := range all {
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

var strange = []string{"", "relative", root, root + "/", root + "/../../etc", root + "/plain/inside", "/", "/etc", "/proc/self/root", root + "/a\x00b", root + strings.Repeat("/d", 2100), "ß語𝄞", "\n",
	strings.Repeat("x", 200), "open, sesame", "passphrase", SecretNewPassphrase, "csi.storage.k8s.io/pv", rpc.TokensKey}

// scramble puts strange words into the fields of a message, or takes them away.
func scramble(r *rand.Rand, m protoreflect.Message) {
	word := func() protoreflect.Value { return protoreflect.ValueOfString(strange[r.IntN(len(strange))]) }
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case r.IntN(4) > 0:
		case f.IsMap():
			m.Mutable(f).Map().Set(word().MapKey(), word())
		case f.IsList():
			m.Mutable(f).List().Append(word())
		case f.Message() != nil && r.IntN(2) == 0:
			scramble(r, m.Mutable(f).Message())
		case f.Kind() == protoreflect.StringKind && r.IntN(2) == 0:
			m.Set(f, word())
		case f.Kind() != protoreflect.EnumKind:
			m.Clear(f)
		}
	}
}

// TestScrambled sends requests, most of them spoilt, to the whole of it: none panics,
// and none ends in a way that nobody thought of.
func TestScrambled(t *testing.T) {
	p := newPlugin(t)
	plain, at := p.use("plain", nil, nil)
	sealed, sealedAt := p.use("sealed", map[string]string{drivebay.ParameterEncryption: drivebay.EncryptionLUKS2}, map[string]string{"passphrase": "open, sesame"})
	all := append(seeds(plain, at, mountOf("")), seeds(sealed, sealedAt, mountOf("ext4"))...)
	d, ends := directTo(p.server), map[codes.Code]int{}
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		m := proto.Clone(all[r.IntN(len(all))])
		if r.IntN(8) > 0 {
			scramble(r, m.ProtoReflect())
		}
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(d.calls, func(c directCall) bool { return c.MethodName+"Request" == string(m.ProtoReflect().Descriptor().Name()) })
		resp, _, err := d.call(t.Context(), n, b)
		ends[status.Code(err)]++
		if err := hold(resp, err); err != nil {
			t.Errorf("%s: %v", d.calls[n].MethodName, err)
		}
	}
	for _, code := range []codes.Code{codes.OK, codes.InvalidArgument, codes.NotFound, codes.Unauthenticated, codes.Unimplemented} {
		if ends[code] == 0 {
			t.Errorf("no call ended with %v: %v", code, ends)
		}
	}
}
