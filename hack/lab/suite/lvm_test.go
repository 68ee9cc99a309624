//go:build lab

package suite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/agent"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// lvmGuest runs lvm in a guest as the daemon would, counts and can kill it.
type lvmGuest struct {
	m       *lab.Machine
	kill    time.Duration // kill every change after this long; 0: never
	killed  int
	changes []string // commands that were no report
	report  []byte   // the last one
}

func (g *lvmGuest) Run(ctx context.Context, argv ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	p, err := g.m.Guest.Start(ctx, agent.Command{Argv: argv, Env: []string{"LC_ALL=C"}}, agent.Streams{Out: &out, Err: &errs})
	if err != nil {
		return nil, err
	}
	var tooLate *time.Timer
	if argv[1] != "fullreport" {
		g.changes = append(g.changes, argv[1])
		if g.kill > 0 {
			tooLate = time.AfterFunc(g.kill, func() { p.Signal(context.WithoutCancel(ctx), syscall.SIGKILL) })
		}
	}
	err = p.Wait()
	if tooLate != nil {
		tooLate.Stop()
	}
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		if exit.Signal == syscall.SIGKILL {
			g.killed++
		}
		return out.Bytes(), &host.ExitError{Argv: argv, Code: exit.Code, Stderr: errs.String()}
	}
	if argv[1] == "fullreport" {
		g.report = out.Bytes()
	}
	return out.Bytes(), err
}

// lvmBench is a group of ours on drives of a guest.
type lvmBench struct {
	*lvmGuest
	t       *testing.T
	sys     *lvm.System
	group   string
	devices []string
	pvs     []lvm.NewPV
}

func newLVM(t *testing.T, m *lab.Machine, group string, ids ...string) *lvmBench {
	g := &lvmGuest{m: m}
	b := &lvmBench{lvmGuest: g, t: t, sys: lvm.New(g, "/run/drivebay-lvm"), group: group}
	for _, id := range ids {
		dev := "/dev/" + m.Name(id)
		b.devices = append(b.devices, dev)
		b.pvs = append(b.pvs, lvm.NewPV{UUID: lvm.NewPVUUID(), Device: dev})
	}
	return b
}

func (b *lvmBench) pv(i int) string { return b.pvs[i].UUID }

// volume is one of the group with drives by number.
func (b *lvmBench) volume(name string, size uint64, drives ...int) lvm.Volume {
	v := lvm.Volume{Group: b.group, Name: name, Size: size}
	for _, i := range drives {
		v.PVs = append(v.PVs, b.pv(i))
	}
	return v
}

// do carries out a plan twice; the second time nothing may be left to do.
func (b *lvmBench) do(steps []lvm.Step) *lvm.Report {
	b.t.Helper()
	first, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
	if err != nil {
		b.t.Fatal(err)
	}
	b.changes = nil
	again, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
	if err != nil || len(b.changes) > 0 {
		b.t.Errorf("%s: the second run did %v: %v", steps[0].Name, b.changes, err)
	}
	settle(first)
	if settle(again); !reflect.DeepEqual(first, again) {
		b.t.Errorf("%s: the second run left another report:\n%+v\n%+v", steps[0].Name, first, again)
	}
	return again
}

// settle takes out of a report what moves by itself.
func settle(r *lvm.Report) {
	for i := range r.Groups {
		for j := range r.Groups[i].LVs {
			lv := &r.Groups[i].LVs[j]
			lv.Sync, lv.SyncAction, lv.Data, lv.Metadata, lv.Attr = lvm.Percent{}, "", lvm.Percent{}, lvm.Percent{}, ""
		}
	}
}

func (b *lvmBench) read() *lvm.Report {
	b.t.Helper()
	r, err := b.sys.Read(b.t.Context(), b.devices)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// must takes a plan whose words are right.
func must(steps []lvm.Step, err error) []lvm.Step {
	if err != nil {
		panic(err)
	}
	return steps
}

// refused wants a plan to end with an error of a kind.
func (b *lvmBench) refused(kind error, steps []lvm.Step) {
	b.t.Helper()
	_, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
	if !errors.Is(err, kind) {
		b.t.Errorf("it ended with %v, want %v", err, kind)
	}
}

// record keeps the last report for the tests of package lvm when
// DRIVEBAY_LVM_RECORD names its folder testdata.
func (b *lvmBench) record(name string) {
	b.t.Helper()
	b.read()
	if dir := os.Getenv("DRIVEBAY_LVM_RECORD"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), b.report, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestLabLVM: every plan does its work on real drives, and twice is once.
func TestLabLVM(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("A"), nvme("B"), scsi("C", 0x5000c500b0000000)}})
	b := newLVM(t, m, "drivebay-all", "A", "B", "C")
	tag, err := lvm.EncodeTag("name", "a volume, of \"ours\" #1")
	if err != nil {
		t.Fatal(err)
	}
	m.Sh("mkfs.ext4 -q -F %s", b.pvs[2].Device)
	b.do(slices.Concat(must(lvm.CreateGroup(b.group, []string{tag}, b.pvs[0])), lvm.ExtendGroup(b.group, b.pvs[1])))
	b.refused(drivebay.ErrRefused, lvm.ExtendGroup(b.group, b.pvs[2]))
	if kind := m.Sh("blkid -o value -s TYPE %s", b.pvs[2].Device); kind != "ext4" {
		t.Errorf("a filesystem became %q", kind)
	}
	m.Sh("wipefs -aq %s", b.pvs[2].Device)
	b.do(lvm.ExtendGroup(b.group, b.pvs[2]))

	linear := b.volume("drivebay-lin", 50<<20, 0)
	linear.Tags = []string{tag}
	r := b.do(slices.Concat(must(lvm.CreateLinear(linear)), lvm.Extend(b.group, linear.Name, 70<<20)))
	if lv := r.LV(b.group, linear.Name); lv.Size != 72<<20 || !slices.Contains(lv.Tags, tag) || !lv.Active {
		t.Errorf("the linear volume is %+v", lv)
	}
	b.do(must(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	b.do(slices.Concat(must(lvm.CreatePool(b.volume("drivebay-pool", 32<<20, 1), 4<<20)),
		must(lvm.CreateThin(b.volume("drivebay-thin", 96<<20), "drivebay-pool"))))
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-thin bs=1M count=4 oflag=direct status=none", b.group)
	b.do(must(lvm.Snapshot(b.volume("drivebay-snap", 0), "drivebay-thin")))
	sum := m.Sh("md5sum </dev/%s/drivebay-thin", b.group)
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-thin bs=1M count=1 oflag=direct status=none", b.group)
	b.do(slices.Concat(must(lvm.Clone(b.volume("drivebay-clone", 0), "drivebay-snap")), lvm.Activate(b.group, "drivebay-clone")))
	if got := m.Sh("md5sum </dev/%s/drivebay-clone", b.group); got != sum {
		t.Error("the clone of the snapshot does not hold what the volume held")
	}
	b.record("healthy")
	b.do(slices.Concat(must(lvm.TagVolume(b.group, linear.Name, []string{"x=1"}, []string{tag})), must(lvm.TagGroup(b.group, []string{"y"}, []string{tag}))))

	b.refused(lvm.ErrNoSpace, must(lvm.CreateLinear(b.volume("drivebay-big", 1<<40))))
	b.refused(lvm.ErrExists, must(lvm.CreateMirror(b.volume(linear.Name, 50<<20, 0, 1))))
	b.refused(drivebay.ErrNotFound, lvm.Extend(b.group, "drivebay-none", 1<<20))
	b.refused(lvm.ErrInUse, lvm.ReduceGroup(b.group, b.pv(0)))
	m.Sh("mkfs.ext4 -q /dev/%s/%s; mkdir -p /run/mnt; mount /dev/%[1]s/%[2]s /run/mnt", b.group, linear.Name)
	b.refused(drivebay.ErrBusy, lvm.Remove(b.group, linear.Name))
	b.refused(drivebay.ErrBusy, lvm.Deactivate(b.group, linear.Name))
	m.Sh("umount /run/mnt")

	if said := m.Output("dd if=/dev/zero of=/dev/" + b.group + "/drivebay-thin bs=1M count=80 oflag=direct 2>&1"); !strings.Contains(said, "No space left") {
		t.Errorf("writing more than the pool has: %s", said)
	}
	b.record("thin-full")
	if lv := b.read().LV(b.group, "drivebay-pool"); lv.Health != "out_of_data" || !lv.Data.Full() {
		t.Errorf("the full pool is %q, %v", lv.Health, lv.Data)
	}
	b.do(lvm.Extend(b.group, "drivebay-pool", 64<<20))
	b.do(lvm.ExtendMetadata(b.group, "drivebay-pool", 8<<20))
	m.Sh("lvcreate -q -y -s -n before -L 8M %s/%s; lvcreate -q -y -s -n copy %[1]s/drivebay-thin", b.group, linear.Name) // by hand
	for _, name := range []string{linear.Name, "drivebay-thin"} {
		b.refused(drivebay.ErrRefused, lvm.Remove(b.group, name))
	}
	b.refused(drivebay.ErrRefused, lvm.Extend(b.group, linear.Name, 200<<20))
	b.refused(lvm.ErrInUse, lvm.Remove(b.group, "drivebay-pool"))
	m.Sh("lvremove -q -y %s/before %[1]s/copy", b.group)
	var left []lvm.Step
	for _, name := range []string{"drivebay-clone", "drivebay-thin", "drivebay-snap", "drivebay-pool", "drivebay-mir"} {
		left = append(left, lvm.Remove(b.group, name)...)
	}
	b.do(append(left, lvm.ReduceGroup(b.group, b.pv(1), b.pv(2))...))
	b.refused(lvm.ErrInUse, lvm.RemoveGroup(b.group, b.pv(0)))
	b.do(lvm.Deactivate(b.group, linear.Name))
	r = b.do(append(lvm.Remove(b.group, linear.Name), lvm.RemoveGroup(b.group, b.pv(0))...))
	if len(r.Groups)+len(r.Free) > 0 || strings.Contains(m.Output("wipefs "+strings.Join(b.devices, " ")), "LVM") {
		t.Errorf("something is left: %+v", r)
	}
}
