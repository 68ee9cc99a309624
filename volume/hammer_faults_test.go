package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// aDrive is a drive as the machine, and not drivebay, knows it.
type aDrive struct {
	id, serial, name string
	size             uint64
	present          bool
}

func (w *world) drives() []aDrive {
	var out []aDrive
	for i, v := range w.sim.View() {
		d := aDrive{serial: w.born[i], name: v.Name, size: v.Size, present: v.Present}
		for id, serial := range w.ids {
			if serial == d.serial {
				d.id = id
			}
		}
		out = append(out, d)
	}
	return out
}

// anyDrive is one of those whose serial number is wanted, or an empty one.
func (w *world) anyDrive(r *rand.Rand, want func(serial string) bool) aDrive {
	list := slices.DeleteFunc(w.drives(), func(d aDrive) bool { return !want(d.serial) })
	if len(list) == 0 {
		return aDrive{}
	}
	return list[r.IntN(len(list))]
}

// scar is what a hand has overwritten, until it is put back.
type scar struct {
	fault     string
	dev       string // below the drive: "" or "p1"
	off       int64
	was, left []byte
}

// whole says whether nothing is wrong with a drive.
func (w *world) whole(serial string) bool {
	for what := range w.faults {
		if strings.HasSuffix(what, " "+serial) {
			return false
		}
	}
	return len(w.keep[serial]) == 0
}

func (w *world) pull(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool {
		return w.whole(s) && w.isPresent(s) && !(w.without["mirror-pull"] && w.hasLeg(s))
	})
	if d.name == "" {
		return "-"
	}
	w.fault("pulled " + d.serial)
	return fmt.Sprint(d.serial, " ", d.name, ": ", w.inject(d.serial, "vanish", nil))
}

// hasLeg says whether a leg of a mirror is on a drive, or may be.
func (w *world) hasLeg(serial string) bool {
	return slices.ContainsFunc(w.volumes, func(c *client) bool {
		if c.request.Class.Backing != drivebay.BackingMirror {
			return false
		}
		v, ok := w.e.Volumes().Find(c.name)
		return !ok || slices.ContainsFunc(v.Location.Drives, func(id string) bool { return w.ids[id] == serial })
	})
}

func (w *world) isPresent(serial string) bool {
	return slices.ContainsFunc(w.drives(), func(d aDrive) bool { return d.serial == serial && d.present })
}

func (w *world) back(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return !w.isPresent(s) })
	if d.serial == "" {
		return "-"
	}
	return w.putBack(d.serial, r.IntN(2) == 0)
}

var bays = []string{"7", "8", "13", "14", "1", "2", "3", "4", "5", "6", "11", "12"}

func (w *world) putBack(serial string, rename bool) string {
	err := w.inject(serial, "return", hostsim.Args{"rename": fmt.Sprint(rename)})
	for _, bay := range bays { // another drive is in its bay
		if err == nil {
			break
		}
		err = w.inject(serial, "move", hostsim.Args{"to": bay})
	}
	w.lifted("pulled " + serial)
	return fmt.Sprint(serial, " renamed ", rename, ": ", err)
}

// unmountOne takes a mount away behind drivebay's back.
func (w *world) unmountOne(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.alive() && c.used && len(w.mounts(target(c.volume, "pod"))) > 0 })
	if c == nil {
		return "-"
	}
	w.letGo(c)
	path := target(c.volume, "pod")
	known := w.published(c) && w.ofThisBoot(c)
	err := w.sim.UnmountBehind(path)
	if err == nil {
		w.lifted("unmounted " + c.name) // it may have been healed meanwhile
	}
	if err == nil && known { // what no record has any more is not missed
		w.fault("unmounted " + c.name)
	}
	return c.said(err)
}

// spoilLabel flips a bit in the label of a physical volume.
func (w *world) spoilLabel(r *rand.Rand) string {
	for _, d := range w.drives() {
		if !d.present || !w.claimed[d.serial] || !w.whole(d.serial) {
			continue
		}
		for _, dev := range w.partitionsOf(d) {
			b := w.readRaw(dev, 512, 512)
			if string(b[:8]) != "LABELONE" {
				continue
			}
			left := slices.Clone(b)
			left[r.IntN(8)] ^= 1 << r.IntN(8)
			w.overwrite(d.serial, scar{"label of " + d.serial, strings.TrimPrefix(dev, "/dev/"+d.name), 512, b, left}, dev)
			return d.serial
		}
	}
	return "-"
}

func (w *world) partitionsOf(d aDrive) (devs []string) {
	names, _ := w.sim.ReadDir("sys/block/" + d.name)
	for _, n := range names {
		if _, err := w.sim.ReadFile("sys/block/" + d.name + "/" + n + "/partition"); err == nil {
			devs = append(devs, "/dev/"+n)
		}
	}
	return devs
}

func (w *world) readRaw(dev string, off int64, n int) []byte {
	b := make([]byte, n)
	disk, err := w.sim.OpenDisk(hostsim.As(w.Context(), "hand"), dev, false)
	if err != nil {
		return b
	}
	defer disk.Close()
	if _, err := disk.ReadAt(b, off); err != nil && err != io.EOF {
		return make([]byte, n)
	}
	return b
}

// overwrite puts bytes on a drive by hand.
func (w *world) overwrite(serial string, s scar, dev string) {
	if s.fault != "" {
		w.fault(s.fault)
	}
	w.spoiled[serial] = append(w.spoiled[serial], s)
	w.handWrites(dev, s.left, s.off)
}

func (w *world) handWrites(dev string, b []byte, off int64) {
	disk, err := w.sim.OpenDisk(hostsim.As(w.Context(), "hand"), dev, false)
	w.must(err)
	_, err = disk.WriteAt(b, off)
	w.must(err, disk.Close())
}

// named says whether a record names a drive, other than of a volume that is being made: then
// nothing on it is free, whatever it shows.
func (w *world) named(serial string) bool {
	on := func(l drivebay.Location) bool {
		return slices.ContainsFunc(l.Drives, func(id string) bool { return w.ids[id] == serial })
	}
	volumes, err := w.st.Volumes()
	snaps, err2 := w.st.VolumeSnapshots()
	w.must(err, err2)
	for _, r := range volumes {
		if r.Work != nil && r.Work.Op == drivebay.WorkCreate {
			continue
		}
		if on(r.Volume.Location) || r.Work != nil && r.Work.Move != nil && (on(r.Work.Move.From) || on(r.Work.Move.To)) {
			return true
		}
		if slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool { return on(c.Location) }) { // its deletion waits for the wipe of the copy
			return true
		}
	}
	for _, r := range snaps {
		if on(r.Snapshot.Location) {
			return true
		}
	}
	return false
}

// zap clears both copies of the table of a drive that holds volumes (sgdisk --zap-all).
func (w *world) zap(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return w.claimed[s] && w.whole(s) && w.isPresent(s) && w.named(s) })
	holds := func(dev string) bool { // records may only mean to put something there, or not yet have copied it
		text, _ := w.sim.ReadFile("sys/class/block/" + strings.TrimPrefix(dev, "/dev/") + "/uevent")
		return !strings.Contains(string(text), "PARTNAME=drivebay-new-")
	}
	if d.name == "" || !slices.ContainsFunc(w.partitionsOf(d), holds) {
		return "-"
	}
	const first, last = 34 * 512, 33 * 512
	dev := "/dev/" + d.name
	for _, at := range []struct{ off, n int64 }{{0, first}, {int64(d.size) - last, last}} {
		w.overwrite(d.serial, scar{"table of " + d.serial, "", at.off, w.readRaw(dev, at.off, int(at.n)), make([]byte, at.n)}, dev)
		w.locked(func() { w.keep[d.serial] = append(w.keep[d.serial], extent{uint64(at.off), uint64(at.n)}) })
	}
	return d.serial
}

// emptied forgets the erased tables of drives from which every volume has gone: such a drive
// gets a new table.
func (w *world) emptied() {
	for serial, scars := range w.spoiled {
		fault := "table of " + serial
		if !slices.ContainsFunc(scars, func(s scar) bool { return s.fault == fault }) || w.named(serial) {
			continue
		}
		w.spoiled[serial] = slices.DeleteFunc(scars, func(s scar) bool { return s.fault == fault })
		w.locked(func() { delete(w.keep, serial) })
		w.lifted(fault)
	}
}

// restoreScars puts back what a hand has overwritten.
func (w *world) restoreScars(serial string) {
	for _, d := range w.drives() {
		if d.serial != serial || !d.present {
			continue
		}
		for _, s := range w.spoiled[serial] {
			dev := "/dev/" + d.name + s.dev
			if s.dev != "" && !slices.Contains(w.partitionsOf(d), dev) {
				dev = w.sibling(d, s)
			}
			if dev != "" && bytes.Equal(w.readRaw(dev, s.off, len(s.left)), s.left) { // nobody has made another use of it
				w.handWrites(dev, s.was, s.off)
			}
			w.lifted(s.fault)
		}
		w.reread(d)
		delete(w.spoiled, serial)
		w.locked(func() { delete(w.keep, serial) })
	}
}

// reread has the kernel read the table of a drive: one that was started without the table does not know of it.
func (w *world) reread(d aDrive) {
	disk, err := w.sim.OpenDisk(hostsim.As(w.Context(), "hand"), "/dev/"+d.name, false)
	w.must(err)
	defer disk.Close()
	table, err := gpt.Read(disk)
	if err != nil {
		return
	}
	for _, p := range table.Partitions {
		if w.sibling(d, scar{dev: fmt.Sprint(p.Number)}) == "" {
			w.must(disk.AddPartition(p.Number, p.Start, p.Size))
		}
	}
}

// sibling is the partition of a scar when the drive has another name.
func (w *world) sibling(d aDrive, s scar) string {
	number := strings.TrimLeft(s.dev, "p")
	for _, dev := range w.partitionsOf(d) {
		if strings.TrimLeft(strings.TrimPrefix(dev, "/dev/"+d.name), "p") == number {
			return dev
		}
	}
	return ""
}

// intrude writes data of others onto a drive that is not in use by us, or beside our partitions.
func (w *world) intrude(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return w.whole(s) && w.isPresent(s) && w.empty(s) })
	if d.name == "" || len(w.sim.Written("/dev/"+d.name)) > 0 {
		return "-"
	}
	dev := "/dev/" + d.name
	w.locked(func() { w.keep[d.serial] = []extent{{0, d.size}} })
	b := make([]byte, 4096)
	copy(b[1024+0x38:], "\x53\xef")
	b[1024+0x60] = 0x42
	w.overwrite(d.serial, scar{"", "", 0, make([]byte, 4096), b}, dev)
	for range 3 {
		off := (1<<20 + r.Int64N(int64(d.size)-2<<20)) / pageSize * pageSize
		w.overwrite(d.serial, scar{"", "", off, make([]byte, pageSize), render(w.fresh(nil, 0))}, dev)
	}
	return d.serial
}

// copyDrive writes a drive onto another that holds nothing, as dd does.
func (w *world) copyDrive(r *rand.Rand) string {
	from := w.anyDrive(r, func(s string) bool { return w.claimed[s] && w.whole(s) && w.isPresent(s) && !w.empty(s) })
	to := w.anyDrive(r, func(s string) bool { return s != from.serial && w.whole(s) && w.isPresent(s) && w.empty(s) })
	if from.name == "" || to.name == "" || len(w.partitionsOf(from)) == 0 || len(w.sim.Written("/dev/"+to.name)) > 0 {
		return "-"
	}
	w.locked(func() { w.keep[to.serial] = []extent{{0, to.size}} })
	w.fault("copy of " + from.serial)
	w.must(w.inject(to.serial, "vanish", nil), w.sim.Copy(from.serial, to.serial, "hand"))
	time.Sleep(3 * time.Second)
	w.spoiled[to.serial] = append(w.spoiled[to.serial], scar{"copy of " + from.serial, "", -1, nil, nil})
	return from.serial + " to " + w.putBack(to.serial, r.IntN(2) == 0)
}

// backup is a copy of the store.
type backup struct {
	st      *store.Mem
	claimed map[string]bool
}

// otherStore: the daemon is to begin with records that are lost or older than the drives. What
// was begun since is not in them: mounts, what volumes have left, and how far a deletion came.
func (w *world) otherStore() {
	for _, c := range w.volumes {
		w.lifted("unmounted " + c.name)
		w.lifted("unreadable " + c.name)
		c.unrecorded = true
	}
	w.locked(func() {
		for number, x := range w.marks {
			if x.owner != nil && len(x.on) > 0 && !slices.Contains(w.volumes, x.owner) && x.owner.unrecorded {
				w.mayReturn[x.owner.name][number] = true
			}
		}
	})
}

func (w *world) anyErased() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(w.faults)), func(f string) bool { return strings.HasPrefix(f, "table of ") })
}

func (w *world) loseStore(*rand.Rand) string {
	if w.anyErased() { // then nothing is left that knows of what is on a drive
		return "-"
	}
	w.shutDown()
	w.otherStore()
	w.st = store.Memory()
	w.locked(func() {
		for s := range w.claimed {
			w.claimed[s] = strings.HasPrefix(s, "OURS")
		}
	})
	w.boot()
	return ""
}

func (s *stand) copyOfStore() *store.Mem {
	out := store.Memory()
	records, err1 := s.st.Records()
	volumes, err2 := s.st.Volumes()
	snaps, err3 := s.st.VolumeSnapshots()
	remains, err4 := s.st.Remains()
	forgotten, err5 := s.st.Forgotten()
	s.must(err1, err2, err3, err4, err5, out.PutRecords(records))
	for _, r := range remains {
		s.must(out.PutRemains(r))
	}
	for _, f := range forgotten {
		s.must(out.PutForgotten(f))
	}
	for _, v := range volumes {
		s.must(out.PutVolume(v))
	}
	for _, x := range snaps {
		s.must(out.PutVolumeSnapshot(x))
	}
	return out
}

func (w *world) keepStore(*rand.Rand) string {
	b := &backup{w.copyOfStore(), map[string]bool{}}
	for s, on := range w.claimed {
		b.claimed[s] = on
	}
	w.backup = b
	return ""
}

// restoreStore has the daemon find an older copy of its store.
func (w *world) restoreStore(*rand.Rand) string {
	if w.backup == nil || w.anyErased() {
		return "-"
	}
	w.shutDown()
	w.otherStore()
	w.st = w.backup.st
	w.locked(func() { w.claimed = w.backup.claimed })
	w.backup = nil
	w.boot()
	return ""
}
