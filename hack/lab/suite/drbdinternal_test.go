//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/drbd"
)

// drbdLV is a site whose disk is a logical volume, which grows.
type drbdLV struct {
	*drbdSite
	size uint64
}

func newDRBDLV(t *testing.T, size uint64) *drbdLV {
	s := newDRBDSiteOf(t, nil, 1, 512<<20)
	s.Sh("pvcreate -q %s && vgcreate -q vg %[1]s && lvcreate -q -y -Wn -Zn -L %db -n lv vg", s.disk, size)
	s.disk = "/dev/vg/lv"
	return &drbdLV{s, size}
}

func (s *drbdLV) grow(by uint64) {
	s.t.Helper()
	s.Sh("lvextend -q -L +%db %s", by, s.disk)
	s.size += by
}

// at returns the metadata whose superblock is at an end that the disk has or had; nil: it has no metadata there.
func (s *drbdLV) at(end uint64) *drbd.Metadata {
	s.t.Helper()
	out := s.Output(fmt.Sprintf("%s metadata %s %d 2>&1", s.program, s.disk, end))
	if strings.Contains(out, "no DRBD metadata") {
		return nil
	}
	m := &drbd.Metadata{}
	s.Must(json.Unmarshal([]byte(out), m))
	return m
}

// fails wants a command to fail, and to say why.
func (s *drbdLV) fails(argv []string, why string) {
	s.t.Helper()
	if out := s.Output(strings.Join(argv, " ") + " 2>&1; echo status $?"); !strings.Contains(out, why) || strings.Contains(out, "status 0") {
		s.t.Errorf("%v: %s", argv, out)
	}
}

// TestLabDRBDInternal: metadata at the end of a disk that was grown for them, below an ext4 that keeps its data; what a
// growth does with them, what a growth that was cut short leaves, and what is left when the replication ends.
func TestLabDRBDInternal(t *testing.T) {
	t.Parallel()
	const MiB = 1 << 20
	s := newDRBDLV(t, 96*MiB)
	s.Sh("mkfs.ext4 -q %s && mount %[1]s /mnt && dd if=/dev/urandom of=/mnt/old bs=1M count=8 status=none && md5sum </mnt/old >/tmp/sum && umount /mnt", s.disk)
	holds := func(device string) {
		t.Helper()
		s.Sh("mount %s /mnt && md5sum </mnt/old | cmp - /tmp/sum; status=$?; umount /mnt; exit $status", device)
	}

	// A file system that uses all of the disk is not overwritten. In a disk that was grown, it is kept.
	s.fails(drbd.CreateMetadata(7, s.disk), "Operation refused")
	s.grow(4 * MiB)
	if want := drbd.DiskFor(drbd.DeviceFor(96*MiB), 4*MiB); want != s.size {
		t.Errorf("a device of 96 MiB needs a disk of %d, DiskFor says %d", s.size, want)
	}
	s.command(drbd.CreateMetadata(7, s.disk))
	s.do("new")
	for range 8 { // the kernel waits interruptibly in "detach"; the program gets signals without end
		s.command(drbd.ApplyActivityLog(7, s.disk))
		s.do("attach", s.disk, s.size-drbd.MetadataBytes(s.size))
		s.do("detach")
	}
	s.command(drbd.ApplyActivityLog(7, s.disk))
	s.refused(1, "attach", s.disk, s.size-drbd.MetadataBytes(s.size)+4096)
	s.do("attach", s.disk, s.size-drbd.MetadataBytes(s.size)) // all that the metadata leave
	s.do("detach")
	s.command(drbd.WipeMetadata(7, s.disk))
	holds(s.disk)

	// --force overrides that the disk is in use, but not that the minor has a disk.
	s.Sh("mount %s /mnt", s.disk)
	if out := s.Sh("%s 2>&1", strings.Join(drbd.CreateMetadata(7, s.disk), " ")); !strings.Contains(out, "Exclusive open failed. Do it anyways?") {
		t.Errorf("drbdmeta on a disk that is mounted: %s", out)
	}
	s.Sh("umount /mnt")
	s.do("attach", s.disk, drbdSize)
	s.fails(drbd.ApplyActivityLog(7, s.disk), "Device '7' is configured!")
	s.do("primary", "force")
	holds("/dev/drbd7")
	if out := s.Output("mount " + s.disk + " /mnt 2>&1; blkid -p -o value -s TYPE " + s.disk); !strings.Contains(out, "drbd") || strings.Contains(out, "ext4") {
		t.Errorf("the disk below looks like %q", out)
	}

	// Growth: the kernel keeps the metadata at their place until it is asked to resize, and leaves the old ones there.
	was := s.size
	s.grow(4 * MiB)
	if s.at(s.size) != nil || s.at(was) == nil {
		t.Error("the metadata moved with the disk, without a request")
	}
	s.do("resize", drbdSize)
	if s.at(s.size) == nil || s.at(was) == nil {
		t.Errorf("after the resize: metadata at the end %v, at the end before %v", s.at(s.size), s.at(was))
	}
	s.do("resize", drbdSize+4*MiB)
	if x := s.status(); x.Bytes != drbdSize {
		t.Errorf("without a peer the device grew to %d", x.Bytes)
	}

	s.Sh("drbdsetup resize 7 --size=%ds --assume-peer-has-space", (drbdSize+4*MiB)/512)
	fresh := s.at(s.size)
	if x := s.status(); x.Bytes != drbdSize+4*MiB || fresh == nil || fresh.Bytes != x.Bytes {
		t.Errorf("after the growth: %+v, metadata %+v", x, fresh)
	}
	s.do("down")

	// A growth that was cut short before the resize. By the size that drbdmeta remembers from before the first growth it
	// moves the metadata that the kernel left there: an old size, an old bitmap.
	was = s.size
	s.grow(4 * MiB)
	s.Sh("%s", strings.Join(drbd.ApplyActivityLog(7, s.disk), " "))
	if m := s.at(s.size); m == nil || m.Bytes != drbdSize {
		t.Errorf("drbdmeta moved no old metadata: %+v", m)
	}
	s.command(drbd.WipeMetadata(7, s.disk))

	// Without that file, nothing is found at the new end. With the right size in it, drbdmeta moves the right ones.
	s.Sh("rm -f %s", drbd.LastKnown(7))
	s.fails(drbd.ApplyActivityLog(7, s.disk), "No valid meta data found")
	s.do("new")
	s.refused(17, "attach", s.disk, drbdSize)
	s.Sh("echo %s >%s; %s", strings.TrimSpace(string(drbd.MovedFrom(was))), drbd.LastKnown(7), strings.Join(drbd.ApplyActivityLog(7, s.disk), " "))
	if m := s.at(s.size); m == nil || m.Bytes != fresh.Bytes || m.Generations != fresh.Generations {
		t.Errorf("the metadata that drbdmeta moved: %+v, want %+v", m, fresh)
	}
	if s.at(was) != nil {
		t.Error("drbdmeta left metadata at the old end, like the kernel")
	}
	s.do("attach", s.disk, drbdSize+4*MiB)
	s.do("primary")
	holds("/dev/drbd7")

	// The end: wiped metadata leave the plain disk, with room at its end.
	s.do("down")
	s.command(drbd.WipeMetadata(7, s.disk))
	if s.at(s.size) != nil {
		t.Error("the metadata are still there")
	}
	holds(s.disk)
	if out := s.Sh("blkid -p -o value -s TYPE %s", s.disk); out != "ext4" {
		t.Errorf("the disk looks like %q", out)
	}
}

// TestLabDRBDGeneration: a side with data gets a generation of its own before its first connection, and the new side gets
// the data, without a primary. Without that generation the first peer that has one would replace them.
func TestLabDRBDGeneration(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	p := drbdPair{t, newDRBDSite(t, cable, 1), newDRBDSite(t, cable, 2)}
	a, b := p.a, p.b
	for _, s := range p.sites() {
		s.Sh("dd if=/dev/urandom of=%s bs=1M count=16 oflag=direct status=none", s.disk)
		s.command(drbd.CreateMetadata(7, s.disk))
		s.do("new")
		s.attach()
	}
	before, other := a.content(a.disk), b.content(b.disk)
	a.do("primary", "force")
	a.do("secondary")
	if x := a.status(); x.State.Disk != drbd.UpToDate || x.Generations == nil || x.Generations.Current&^1 == 4 {
		t.Errorf("a generation of its own: %+v %+v", x, x.Generations)
	}
	for _, s := range p.sites() {
		s.do("connect", s.local, s.remote)
	}
	a.until("in sync", inSync)
	if a.content(a.disk) != before || b.content(b.disk) != before || before == other {
		t.Error("the new side did not get the data of the other one")
	}

	// The fault that the generation prevents: new metadata on the side with the data.
	for _, s := range p.sites() {
		s.do("down")
	}
	a.command(drbd.CreateMetadata(7, a.disk))
	b.Sh("dd if=/dev/urandom of=%s bs=1M count=16 oflag=direct status=none", b.disk)
	wrong := b.content(b.disk)
	for _, s := range p.sites() {
		s.do("new")
		s.attach()
		s.do("connect", s.local, s.remote)
	}
	a.until("in sync", inSync)
	if a.content(a.disk) != wrong {
		t.Error("new metadata defended the data of their side")
	}
}
