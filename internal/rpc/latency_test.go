package rpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// Every call is counted by its code and in the buckets of its bounds, a panic too.
func TestLatencies(t *testing.T) {
	var l Latencies
	g := Guard{Log: slog.New(slog.DiscardHandler), Admit: func(string, proto.Message) error { return nil }, Latencies: &l,
		Code: func(string, error) codes.Code { return codes.NotFound }}
	call := func(method string, err error) {
		_, _ = g.Intercept(t.Context(), &csi.ProbeRequest{}, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Identity/" + method}, func(context.Context, any) (any, error) {
			if method == "Panics" {
				panic("x")
			}
			return &csi.ProbeResponse{}, err
		})
	}
	call("Probe", nil)
	call("Probe", nil)
	call("Probe", errors.New("x"))
	call("Panics", nil)
	l.observe("/csi.v1.Identity/Probe", codes.OK, 5*time.Second)
	l.observe("/csi.v1.Identity/Probe", codes.OK, time.Hour)
	all := l.All()
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	if panics := all[0]; panics.Method != "Panics" || panics.Code != "Internal" || panics.Calls != 1 {
		t.Errorf("%+v", panics)
	}
	if probe := all[1]; probe.Service != "csi.v1.Identity" || probe.Method != "Probe" || probe.Code != "OK" || probe.Calls != 4 ||
		probe.Within[2] != 2 || probe.Within[3] != 3 || probe.Within[4] != 3 || probe.Sum < time.Hour+5*time.Second {
		t.Errorf("%+v", probe)
	}
	if failed := all[2]; failed.Code != "NotFound" || failed.Calls != 1 {
		t.Errorf("%+v", failed)
	}
	var none *Latencies
	none.observe("/x/y", codes.OK, 1) // a server without a counter
}

// All methods that exist, with all codes, take less than 256 KiB.
func TestLatenciesMemory(t *testing.T) {
	const methods, limit = 45, 256 << 10
	var before, after runtime.MemStats
	var l Latencies
	runtime.GC()
	runtime.ReadMemStats(&before)
	for m := range methods {
		for c := range codes.Code(17) {
			for range 3 {
				l.observe("/csi.v1.Controller/SomeMethodWithALongName"+string(rune('A'+m)), c, time.Second)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d histograms: %d bytes", methods*17, took)
	if len(l.All()) != methods*17 || took > limit {
		t.Errorf("%d histograms take %d bytes", len(l.All()), took)
	}
}
