//go:build lab

package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	addonsSocket = "/run/drivebay/addons.sock"
	// healing is a daemon that heals when it is asked to, tending one that does so by
	// itself.
	healing = carrying + "addonsEndpoint: unix://" + addonsSocket + "\n"
	tending = healing + "healing: {policy: safe}\n"
)

// hospital is an orchestrator that has volumes healed.
func hospital(t *testing.T, config string, drives ...machine.Drive) *orchestrator {
	t.Helper()
	return orchestrateBy(t, lab.Start(t, machine.Spec{Drives: drives}), config)
}

// write has a pod write something that will be looked for; it is on the drive.
func (o *orchestrator) write(v vol) (sum string) {
	o.t.Helper()
	o.Sh("head -c 8M /dev/urandom >%s/data && sync", v.target())
	return o.sum(v)
}

// sum is the checksum of that, from the drive and not from memory.
func (o *orchestrator) sum(v vol) string {
	o.t.Helper()
	return o.Sh("echo 3 >/proc/sys/vm/drop_caches; sha256sum <%s/data", v.target())
}

// intact wants a volume to hold what was written, and to take more.
func (o *orchestrator) intact(v vol, sum string) {
	o.t.Helper()
	if got := o.sum(v); got != sum {
		o.t.Errorf("%s: the data have changed", v.name)
	}
	o.Sh("echo more >%s/more && sync %[1]s/more", v.target())
}

// asks calls NodeHealer, and holds its answer against that of CSI.
func (o *orchestrator) asks(v vol) *healer.NodeHealerResponse {
	o.t.Helper()
	conn, err := grpc.NewClient("unix://"+o.Forward(addonsSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	o.Must(err)
	defer conn.Close()
	var got *healer.NodeHealerResponse
	var is condition
	for range 2 { // what the kernel counts of a drive may come in between the two answers, once
		began := time.Now()
		got, err = healer.NewHealerNodeClient(conn).NodeHealer(o.t.Context(), &healer.NodeHealerRequest{
			VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging(), VolumeCapability: v.capability()})
		if err != nil {
			o.t.Fatalf("NodeHealer %s: %v", v.name, err)
		}
		o.t.Logf("%s: NodeHealer took %v: abnormal %v: %s", v.name, time.Since(began).Round(time.Millisecond), got.Abnormal, got.Message)
		if is, _ = o.old(v); got.Abnormal == is.Abnormal && got.Message == is.Message {
			return got
		}
	}
	o.t.Errorf("%s: NodeHealer says %v, %q; NodeGetVolumeStats %v, %q", v.name, got.Abnormal, got.Message, is.Abnormal, is.Message)
	return got
}

// journal are the causes of a volume's events of a kind.
func (o *orchestrator) journal(v vol, kind drivebay.EventKind) (out []string) {
	o.t.Helper()
	all, err := o.d.Events(o.t.Context(), 0, 10000)
	o.Must(err)
	for _, e := range all {
		if e.Volume == v.id && e.Kind == kind {
			out = append(out, e.Cause)
		}
	}
	return out
}

// byItself waits until a volume was healed without being asked, by a repair.
func (o *orchestrator) byItself(v vol, repair string, limit time.Duration) {
	o.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		done := o.journal(v, drivebay.EventVolumeHealed)
		if slices.ContainsFunc(done, func(s string) bool {
			return strings.Contains(s, ": "+repair+": ") && strings.HasSuffix(s, "(by itself)")
		}) {
			o.t.Logf("%s: by itself after %v: %s", v.name, time.Since(began).Round(time.Millisecond), strings.Join(done, "; "))
			return
		}
		if time.Since(began) > limit {
			o.t.Fatalf("%s: not by itself within %v: %q, %q", v.name, limit, done, o.journal(v, drivebay.EventVolumeNotHealed))
		}
	}
}
