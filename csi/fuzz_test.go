package csi

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// direct calls a server as gRPC does, without a socket in between.
type direct struct {
	*Server
	methods map[string]grpc.MethodDesc
	owners  map[string]any
}

func newDirect(volumes Volumes) direct {
	e := &engine{}
	e.set(drivebay.Snapshot{Seq: 1, Complete: true})
	return directTo(e, volumes)
}

func directTo(e Engine, volumes Volumes) direct {
	d := direct{New(e, Options{Version: "v9", NodeID: "node-1", Volumes: volumes, Log: slog.New(slog.DiscardHandler)}), map[string]grpc.MethodDesc{}, map[string]any{}}
	for owner, desc := range map[any]grpc.ServiceDesc{&identity{Server: d.Server}: wire.Identity_ServiceDesc, newController(d.Server): wire.Controller_ServiceDesc, newNode(d.Server): wire.Node_ServiceDesc} {
		for _, m := range desc.Methods {
			d.methods[m.MethodName], d.owners[m.MethodName] = m, owner
		}
	}
	return d
}

// call makes a call with whatever fill puts into its request.
func (d direct) call(ctx context.Context, op string, fill func(proto.Message) error) (any, error) {
	return d.methods[op].Handler(d.owners[op], ctx, func(into any) error { return fill(into.(proto.Message)) }, d.guard.Intercept)
}

// hold says what is wrong with how a call ended, whatever was sent.
func hold(resp any, err error) error {
	switch code := status.Code(err); {
	case code == codes.Internal || code == codes.Unknown || code == codes.DataLoss:
		return fmt.Errorf("ends with %w", err)
	case err != nil:
		return nil
	}
	if size := proto.Size(resp.(proto.Message)); size > 4<<20 {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	return checkFields(resp.(proto.Message).ProtoReflect())
}

func operations() []string {
	var all []string
	for op := range newDirect(nil).methods {
		all = append(all, op)
	}
	slices.Sort(all)
	return all
}

func FuzzCalls(f *testing.F) {
	ops := operations()
	for _, r := range rules {
		b, err := proto.Marshal(r.req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(slices.Index(ops, callOf(r.req))), b)
	}
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		op := ops[int(n)%len(ops)]
		wrong := false
		resp, err := newDirect(there()).call(t.Context(), op, func(into proto.Message) error {
			err := proto.Unmarshal(b, into)
			wrong = err != nil
			return err
		})
		if wrong { // gRPC refuses it before we see it
			return
		}
		if err := hold(resp, err); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	})
}

// TestScrambled changes requests that are in order at random places, and makes
// others up, against one memory that lives through all of it.
func TestScrambled(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, seed))
	m := there()
	m.Volumes().Volumes[1].Condition = ill("x").Condition
	d, ops, ends := newDirect(m), operations(), map[codes.Code]int{}
	for i := range 30_000 {
		op := ops[r.IntN(len(ops))]
		resp, err := d.call(t.Context(), op, func(into proto.Message) error {
			for _, j := range r.Perm(len(rules)) {
				if r.IntN(4) > 0 && callOf(rules[j].req) == op {
					proto.Merge(into, rules[j].req)
					break
				}
			}
			scramble(r, into.ProtoReflect(), 3)
			return nil
		})
		ends[status.Code(err)]++
		if err := hold(resp, err); err != nil {
			t.Fatalf("message %d, %s: %v", i, op, err)
		}
	}
	for _, code := range []codes.Code{codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange, codes.Aborted, codes.ResourceExhausted, codes.Unimplemented} {
		if ends[code] == 0 {
			t.Errorf("no call ended with %v: %v", code, ends)
		}
	}
}

var strange = []string{"", "there", "raw", "/target", "/staging", "/../../etc", "a\x00b", "\u0007", "ext4", "luks2", TopologyKey, "node-1", "v00000000", listVolumes.token("there"), listHealth.token(""),
	drivebay.ParameterBacking, "thin", "csi.storage.k8s.io/pv", ephemeralKey, "true", "ß語𝄞", strings.Repeat("x", 128), strings.Repeat("/y", 3000)}

func scramble(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); r.IntN(3) == 0 && depth > 0 {
			scrambleField(r, m, f, depth)
		}
	}
}

func scrambleField(r *rand.Rand, m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	word := func() protoreflect.Value { return protoreflect.ValueOfString(strange[r.IntN(len(strange))]) }
	switch {
	case r.IntN(6) == 0:
		m.Clear(f)
	case f.IsMap():
		m.Mutable(f).Map().Set(word().MapKey(), word())
	case f.IsList() && f.Message() != nil:
		l := m.Mutable(f).List()
		scramble(r, l.AppendMutable().Message(), depth-1)
	case f.IsList():
		m.Mutable(f).List().Append(word())
	case f.Message() != nil:
		scramble(r, m.Mutable(f).Message(), depth-1)
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, word())
	case f.Kind() == protoreflect.EnumKind:
		m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(r.IntN(12)-2)))
	case f.Kind() == protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(r.IntN(2) == 0))
	case f.Kind() == protoreflect.Int64Kind:
		m.Set(f, protoreflect.ValueOfInt64([]int64{0, 1, -1, 1 << 30, 1 << 41, math.MaxInt64, math.MinInt64}[r.IntN(7)]))
	case f.Kind() == protoreflect.Int32Kind:
		m.Set(f, protoreflect.ValueOfInt32([]int32{0, 1, 2, -1, math.MaxInt32, math.MinInt32}[r.IntN(6)]))
	}
}
