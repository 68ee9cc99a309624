package volume_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// operation is something that a client, an operator, a hand in the aisle or fate does.
type operation struct {
	name   string
	weight int // 0: not done
	do     func(*world, *rand.Rand) string
}

var operations []operation

func init() {
	operations = []operation{
		{"create", 14, (*world).create}, {"write", 24, (*world).write}, {"stage", 12, (*world).take}, {"unstage", 8, (*world).give},
		{"expand", 6, (*world).expand}, {"delete", 9, (*world).remove}, {"snapshot", 4, (*world).snapshot}, {"clone", 4, (*world).clone}, {"heal", 4, (*world).healOne},
		{"release", 3, (*world).release}, {"cancel", 3, (*world).cancel}, {"wait", 2, (*world).wait},
		{"restart", 2, (*world).restart}, {"jump", 2, (*world).jump}, {"claim", 2, (*world).claim},
		{"pull", 3, (*world).pull}, {"return", 5, (*world).back}, {"unmount", 2, (*world).unmountOne}, {"lift", 2, func(w *world, _ *rand.Rand) string { return w.settle() }},
		{"label", 2, (*world).spoilLabel}, {"zap", 2, (*world).zap}, {"foreign", 2, (*world).intrude}, {"copy", 2, (*world).copyDrive},
		{"ail", 7, (*world).ail}, {"tools", 3, (*world).ailTools}, {"full", 3, (*world).fillDisk}, {"bay", 2, (*world).otherBay}, {"cordon", 2, (*world).cordon},
		{"rotate", 3, (*world).rotate}, {"power", 2, (*world).cutPower}, {"duplicate", 3, (*world).duplicateSerial},
		{"lose", 1, (*world).loseStore}, {"backup", 2, (*world).keepStore}, {"restore", 1, (*world).restoreStore},
	}
}

// pod is an open device of a published volume.
type pod struct{ disk host.Disk }

type keptSnapshot struct {
	id        string
	of        *client
	pages     map[uint64]uint64
	maybe     map[uint64][]uint64
	size      uint64
	key, next string
}

var hammerKinds = []struct {
	backing drivebay.Backing
	fs      string // empty: a block volume
	weight  int
}{
	{drivebay.BackingPartition, "", 4}, {drivebay.BackingPartition, "ext4", 3}, {drivebay.BackingLVM, "", 3}, {drivebay.BackingLVM, "ext4", 2},
	{drivebay.BackingThin, "", 3}, {drivebay.BackingThin, "ext4", 1}, {drivebay.BackingMirror, "", 3}, {drivebay.BackingMirror, "ext4", 2}, {drivebay.BackingDrive, "", 1}, {drivebay.BackingPartition, "xfs", 1},
}

const mostVolumes = 9

func (w *world) one(r *rand.Rand, want func(*client) bool) *client {
	list := slices.DeleteFunc(slices.Clone(w.volumes), func(c *client) bool { return !want(c) })
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

func (c *client) alive() bool { return c.acked && !c.doomed }

// create asks for a new volume, or again for one that was not acknowledged.
func (w *world) create(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return !c.acked && !c.doomed })
	if c == nil {
		if len(w.volumes) >= mostVolumes {
			return "-"
		}
		c = w.newClient(r)
	}
	return w.ask(c)
}

func (w *world) newClient(r *rand.Rand) *client {
	w.names++
	name := ""
	for i := range mostVolumes {
		if name = fmt.Sprint("v", i); !slices.ContainsFunc(w.volumes, func(c *client) bool { return c.name == name }) {
			break
		}
	}
	n := r.IntN(23)
	i := slices.IndexFunc(hammerKinds, func(k struct {
		backing drivebay.Backing
		fs      string
		weight  int
	}) bool {
		n -= k.weight
		return n < 0
	})
	k := hammerKinds[i]
	size := []uint64{64 << 20, 100 << 20, 192 << 20}[r.IntN(3)]
	fs := k.fs
	switch fs {
	case "":
		fs = "ext4"
	case "xfs":
		size = 320 << 20
	}
	if w.mayReturn[name] == nil {
		w.mayReturn[name] = map[uint64]bool{}
	}
	c := &client{name: name, mayReturn: w.mayReturn[name], number: w.names, pages: map[uint64]uint64{}, maybe: map[uint64][]uint64{}, request: drivebay.VolumeRequest{Name: name, Size: drivebay.SizeRange{Required: size}, Block: k.fs == "",
		Class: drivebay.Class{Backing: k.backing, Wipe: []drivebay.Wipe{drivebay.WipeNone, drivebay.WipeZero, drivebay.WipeDiscard}[r.IntN(3)], FSType: fs}}}
	c.encrypt(r)
	w.volumes = append(w.volumes, c)
	return c
}

// limited is how long a client waits for an answer.
func (w *world) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.Context(), time.Minute)
}

func (w *world) ask(c *client) string {
	ctx, cancel := w.limited()
	defer cancel()
	v, err := w.e.CreateVolume(ctx, c.request)
	if err == nil {
		c.acked, c.volume, c.size = true, v, v.Size
	}
	return c.said(err)
}

func (c *client) said(err error) string {
	kind := "block"
	if !c.block() {
		kind = c.request.Class.FSType
	}
	text := fmt.Sprintf("%s#%d (%s, %s, wipe %s): ", c.name, c.number, c.request.Class.Backing, kind, c.request.Class.Wipe)
	if err != nil {
		return text + err.Error()
	}
	return text + "OK"
}

// take stages and publishes a volume.
func (w *world) take(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.alive() && !c.used })
	if c == nil {
		return "-"
	}
	return c.said(w.use(c))
}

func (w *world) use(c *client) error {
	if err := w.unlock(c); err != nil {
		return err
	}
	c.staged = true
	if err := w.publish(c.volume, "pod"); err != nil {
		return err
	}
	c.used = true
	if w.opens(c) {
		w.oldBytes(c)
	}
	return nil
}

// opens has the pod open the device of its volume; it does not fail while the drive is there.
func (w *world) opens(c *client) bool {
	if w.pods[c] != nil {
		return true
	}
	dev := w.deviceAt(target(c.volume, "pod"))
	if dev == "" {
		return false
	}
	disk, err := w.sim.OpenDisk(hostsim.As(w.Context(), "pod"), dev, false)
	if err != nil {
		return false
	}
	w.pods[c] = &pod{disk}
	return true
}

// deviceAt is the device that is mounted at a path.
func (w *world) deviceAt(path string) string {
	all := w.mounts(path)
	if len(all) == 0 {
		return ""
	}
	m := all[len(all)-1]
	if m.FS == "devtmpfs" {
		return "/dev" + m.Root
	}
	return m.Source
}

// letGo has the pod close its device.
func (w *world) letGo(c *client) {
	if p := w.pods[c]; p != nil {
		p.disk.Close()
		delete(w.pods, c)
	}
	w.lifted("unreadable " + c.name) // no pod reads it now
}

// give unpublishes and unstages a volume.
func (w *world) give(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.acked && (c.used || c.staged) })
	if c == nil {
		return "-"
	}
	return c.said(w.disuse(c))
}

func (w *world) disuse(c *client) error {
	w.letGo(c)
	if !c.used && !c.staged {
		return nil
	}
	if err := w.unpublish(c.volume, "pod"); err != nil {
		return err
	}
	c.used = false
	if err := w.unstage(c.volume); err != nil {
		return err
	}
	c.staged = false
	return nil
}

// write writes pages through the pod.
func (w *world) write(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.alive() && w.pods[c] != nil })
	if c == nil {
		return "-"
	}
	var said []string
	from, to := c.window()
	for range 1 + r.IntN(3) {
		page := from + r.Uint64N((to-from)/pageSize)*pageSize
		switch {
		case r.IntN(3) == 0 && len(c.pages) > 0:
			list := slices.Sorted(maps.Keys(c.pages))
			page = list[r.IntN(len(list))]
		case r.IntN(4) == 0:
			page = to - pageSize
		}
		said = append(said, fmt.Sprint(page>>20, "M"))
		if err := w.writePage(c, page); err != nil {
			return c.said(fmt.Errorf("%v: %w", said, err))
		}
	}
	return c.said(nil) + fmt.Sprint(" ", said)
}

func (w *world) writePage(c *client, page uint64) error {
	number := w.fresh(c, page)
	w.locked(func() { c.maybe[page] = append(c.maybe[page], number) })
	d := w.pods[c].disk
	_, err := d.WriteAt(render(number), int64(page))
	if err == nil {
		err = d.Sync()
	}
	if err == nil {
		w.locked(func() {
			c.pages[page] = number
			delete(c.maybe, page)
		})
	}
	return err
}

// locked changes the model while writes are watched.
func (w *world) locked(f func()) {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	f()
}

func (w *world) expand(r *rand.Rand) string {
	c := w.one(r, (*client).alive)
	if c == nil {
		return "-"
	}
	ctx, cancel := w.limited()
	defer cancel()
	size := c.size + []uint64{4 << 20, 32 << 20, 64 << 20}[r.IntN(3)]
	v, node, err := w.e.ExpandVolume(ctx, c.volume.ID, drivebay.SizeRange{Required: size})
	if err == nil && node && c.used {
		_, err = w.e.ExpandNode(ctx, c.volume.ID, target(c.volume, "pod"), drivebay.SizeRange{Required: size}, c.secrets())
	}
	if err == nil {
		if c.size = v.Size; w.pods[c] != nil {
			w.oldBytes(c)
		}
	}
	return c.said(err) + fmt.Sprintf(" to %d MiB", size>>20)
}

// remove deletes a volume, and goes on with one whose deletion failed.
func (w *world) remove(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.acked && c.doomed })
	if c == nil || r.IntN(3) == 0 {
		if c = w.one(r, func(c *client) bool { return c.acked }); c == nil {
			return "-"
		}
	}
	return c.said(w.erase(c))
}

func (w *world) erase(c *client) error {
	w.locked(func() { c.doomed = true })
	if c.unrecorded || c.doubtful { // older records may say that it is used, though it was unstaged
		c.used, c.staged = true, true
	}
	if c.used || c.staged {
		if err := w.disuse(c); err != nil {
			return err
		}
	}
	ctx, cancel := w.limited()
	defer cancel()
	if err := w.e.DeleteVolume(ctx, c.volume.ID); err != nil {
		return err
	}
	w.volumes = slices.DeleteFunc(w.volumes, func(x *client) bool { return x == c })
	w.wiped(c)
	return nil
}

// wiped: what a class promises to wipe is on no drive when the deletion is acknowledged, but
// for copies that a hand made, and for drives that an event names.
func (w *world) wiped(c *client) {
	if c.request.Class.Wipe == drivebay.WipeNone || c.hidden() || c.unrecorded && c.volume.Location.VG != "" {
		return
	}
	away := map[string]bool{} // what is on drives that are away, lost records do not tell
	for _, d := range w.drives() {
		away[d.serial] = c.unrecorded && !d.present
	}
	events, err := w.st.Events(0, 10000)
	w.must(err)
	left := map[string]bool{}
	for _, e := range events {
		left[w.ids[e.Drive]] = left[w.ids[e.Drive]] || e.Kind == drivebay.EventVolumeLeft
	}
	w.locked(func() {
		for page, number := range c.pages {
			for at := range w.marks[number].on {
				if len(w.keep[at.drive]) == 0 && !left[at.drive] && !away[at.drive] {
					w.wrong("volume %s was deleted with wipe %s, and its page at %d is left at %d of drive %s", c.name, c.request.Class.Wipe, page, at.off, at.drive)
				}
			}
		}
	})
}

func (w *world) snapshot(r *rand.Rand) string {
	if len(w.snaps) > 2 {
		i := r.IntN(len(w.snaps))
		x := w.snaps[i]
		err := w.e.DeleteSnapshot(w.Context(), x.id)
		if err == nil {
			w.snaps = slices.Delete(w.snaps, i, i+1)
		}
		return fmt.Sprintf("delete %s: %v", x.id, err)
	}
	c := w.one(r, func(c *client) bool { return c.alive() && c.thin() })
	if c == nil {
		return "-"
	}
	w.names++
	x, err := w.e.CreateSnapshot(w.Context(), fmt.Sprint("s", w.names), c.volume.ID)
	if err == nil {
		w.snaps = append(w.snaps, &keptSnapshot{x.ID, c, maps.Clone(c.pages), copied(c.maybe), c.size, c.key, c.next})
	}
	return c.said(err)
}

func copied(m map[uint64][]uint64) map[uint64][]uint64 {
	out := map[uint64][]uint64{}
	for k, list := range m {
		out[k] = slices.Clone(list)
	}
	return out
}

// clone makes a volume of a snapshot, or of a volume.
func (w *world) clone(r *rand.Rand) string {
	if len(w.volumes) >= mostVolumes {
		return "-"
	}
	var of *keptSnapshot
	src := w.one(r, func(c *client) bool { return c.alive() && c.thin() })
	switch {
	case len(w.snaps) > 0 && (r.IntN(2) == 0 || src == nil):
		of = w.snaps[r.IntN(len(w.snaps))]
	case src != nil:
		of = &keptSnapshot{"", src, maps.Clone(src.pages), copied(src.maybe), src.size, src.key, src.next}
	default:
		return "-"
	}
	c := w.newClient(r)
	c.request = of.of.request
	if c.key, c.next = of.key, of.next; c.key != "" {
		c.request.Secrets = secrets(c.key)
	}
	c.request.Source = drivebay.Source{}
	c.request.Name, c.request.Size.Required = c.name, of.size
	if c.request.Source.Snapshot = of.id; of.id == "" {
		c.request.Source.Volume = of.of.volume.ID
	}
	said := w.ask(c)
	if !c.acked { // it would show what its source has later
		w.volumes = slices.DeleteFunc(w.volumes, func(x *client) bool { return x == c })
		ctx, cancel := w.limited()
		defer cancel()
		c.volume.ID = volumeIDOf(w, c.name)
		if c.volume.ID != "" {
			c.acked, c.unrecorded = true, true // it may be one of older records
			w.volumes = append(w.volumes, c)
			said += fmt.Sprint("; given up: ", w.erase(c))
		}
		_ = ctx
		return said
	}
	c.pages, c.maybe = maps.Clone(of.pages), copied(of.maybe)
	return said + " of " + of.of.name + of.id
}

func volumeIDOf(w *world, name string) string {
	if v, ok := w.e.Volumes().Find(name); ok {
		return v.ID
	}
	return ""
}

func (w *world) healOne(r *rand.Rand) string {
	c := w.one(r, (*client).alive)
	if c == nil {
		return "-"
	}
	ctx, cancel := w.limited()
	defer cancel()
	report, err := w.e.Heal(ctx, drivebay.HealRequest{Volume: c.volume.ID, Secrets: c.secrets()})
	var done []string
	for _, s := range report.Steps {
		done = append(done, s.Repair+": "+s.Done+s.Failed)
	}
	return c.said(err) + " " + strings.Join(done, ", ")
}

func (w *world) release(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return w.claimed[s] })
	return fmt.Sprint(d.serial, ": ", w.mgr.Operate(w.Context(), d.id, drivebay.LeaveRelease, "hammer"))
}

func (w *world) cancel(r *rand.Rand) string {
	var said []string
	for _, d := range w.mgr.Snapshot().Drives {
		if d.Usage != drivebay.UsageInUse {
			said = append(said, fmt.Sprint(d.Serial, ": ", w.mgr.Operate(w.Context(), d.ID, drivebay.LeaveCancel, "")))
		}
	}
	return strings.Join(said, ", ")
}

func (w *world) wait(r *rand.Rand) string {
	d := time.Duration(1+r.IntN(20)) * time.Minute
	time.Sleep(d)
	return d.String()
}

func (w *world) restart(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		w.start()
		return "the engine"
	}
	w.shutDown()
	w.boot()
	return "the daemon"
}

func (w *world) jump(r *rand.Rand) string {
	d := time.Duration(r.IntN(96)-48) * time.Hour
	w.shutDown()
	w.clock.off.Store(int64(d))
	w.boot()
	return d.String()
}

func (w *world) claim(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return strings.HasPrefix(s, "SPARE") })
	on := !w.claimed[d.serial]
	if !on && w.without["unclaim"] {
		return "-"
	}
	if on { // from now on it may write; refused, it will not
		w.locked(func() { w.claimed[d.serial] = true })
	}
	err := w.mgr.Claim(w.Context(), d.id, on)
	w.locked(func() { w.claimed[d.serial] = on == (err == nil) })
	return fmt.Sprint(d.serial, " ", on, ": ", err)
}
