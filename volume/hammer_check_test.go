package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// seenWithin is how long after a fault every answer has to name it. What is written over
// by hand shows when the drive is looked at next.
func seenWithin(kind string) time.Duration {
	if kind == "label" || kind == "table" {
		return 12 * time.Minute
	}
	return time.Minute
}

// check looks at everything after a step.
func (w *world) check() {
	for _, c := range w.volumes {
		if !c.alive() {
			continue
		}
		w.readable(c)
		w.somewhere(c)
		w.honest(c)
		w.calm(c)
	}
}

// readable: what a pod can read of its volume is what was acknowledged.
func (w *world) readable(c *client) {
	if w.pods[c] == nil {
		return
	}
	w.reopened(c)
	p := w.pods[c]
	b := make([]byte, pageSize)
	for _, page := range c.touched() {
		if _, err := p.disk.ReadAt(b, int64(page)); err != nil {
			if !w.without["unreadable"] && w.published(c) { // what no record has any more is not looked at
				w.fault("unreadable " + c.name)
			}
			return
		}
		if !c.accepts(page, b) {
			w.wrongly("volume %s: the page at %d reads %s, and not mark %d", c.name, page, w.whose(b), c.pages[page])
		}
	}
	w.lifted("unreadable " + c.name)
}

// published says whether a record has the path of a client's pod. An older record can be that of an earlier volume of the name.
func (w *world) published(c *client) bool {
	view, listed := w.e.Volumes().Get(c.volume.ID)
	if listed && c.unrecorded && instance(view.Location) != instance(c.volume.Location) {
		return false
	}
	return listed && slices.ContainsFunc(view.Publications, func(p drivebay.Publication) bool { return p.Path == target(c.volume, "pod") })
}

// ofThisBoot says whether the record has the volume published since the machine was started: one of before says nothing of now.
func (w *world) ofThisBoot(c *client) bool {
	boot, err := w.sim.ReadFile("proc/sys/kernel/random/boot_id")
	w.must(err)
	view, _ := w.e.Volumes().Get(c.volume.ID)
	return slices.ContainsFunc(view.Publications, func(p drivebay.Publication) bool {
		return p.Path == target(c.volume, "pod") && p.Boot == strings.TrimSpace(string(boot))
	})
}

// reopened has a pod whose device went open it again, as one does that starts anew.
func (w *world) reopened(c *client) {
	old := w.pods[c]
	if _, err := old.disk.ReadAt(make([]byte, pageSize), 0); err == nil {
		return
	}
	delete(w.pods, c)
	if w.opens(c) {
		old.disk.Close()
		return
	}
	w.pods[c] = old
}

func (w *world) wrongly(format string, args ...any) { w.locked(func() { w.wrong(format, args...) }) }

func (c *client) touched() []uint64 {
	list := slices.Concat(slices.Collect(maps.Keys(c.pages)), slices.Collect(maps.Keys(c.maybe)))
	slices.Sort(list)
	return slices.Compact(list)
}

// whose names the owner of a page.
func (w *world) whose(b []byte) string {
	number := markOf(b)
	switch x := w.marks[number]; {
	case number == 0:
		return fmt.Sprintf("%x...", b[:8])
	case x == nil:
		return fmt.Sprint("unknown mark ", number)
	case x.owner == nil:
		return fmt.Sprint("mark ", number, " of others")
	default:
		return fmt.Sprintf("mark %d of volume %s#%d at %d", number, x.owner.name, x.owner.number, x.page)
	}
}

// somewhere: every acknowledged page is on a drive.
func (w *world) somewhere(c *client) {
	if c.hidden() { // its pages have no place of their own
		return
	}
	w.locked(func() {
		for page, number := range c.pages {
			if len(w.marks[number].on) == 0 {
				w.wrong("volume %s: the acknowledged page at %d is on no drive", c.name, page)
				return
			}
		}
	})
}

// oldBytes: nothing but the volume's own can be read in it.
func (w *world) oldBytes(c *client) {
	if !c.block() {
		return
	}
	b := make([]byte, pageSize)
	for _, page := range w.sim.Written(w.pods[c].disk.Path()) {
		if _, err := w.pods[c].disk.ReadAt(b, int64(page)); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if !c.accepts(page, b) {
			w.wrongly("volume %s: old bytes can be read at %d: %s", c.name, page, w.whose(b))
			return
		}
	}
}

// honest: no volume is called sound while something is wrong with it.
func (w *world) honest(c *client) {
	bad := w.faultsOf(c)
	if len(bad) == 0 {
		return
	}
	view, listed := w.e.Volumes().Get(c.volume.ID)
	if listed && !view.Condition.Abnormal() {
		w.wrongly("volume %s: no fault is known of it (%v, %v), and there is: %s; it is at %+v", c.name, view.OperationalStatus, view.Health, strings.Join(bad, ", "), view.Location)
	}
}

// calm: no volume is called missing, or is not listed, whose drives are there and are fine, but for a second one with the serial number.
func (w *world) calm(c *client) {
	if c.unrecorded || c.doubtful || time.Since(w.started) < time.Minute {
		return
	}
	view, listed := w.e.Volumes().Get(c.volume.ID)
	if !listed {
		w.wrongly("volume %s is not listed", c.name)
		return
	}
	if view.OperationalStatus == drivebay.Missing && !slices.ContainsFunc(view.Location.Drives, func(id string) bool { return !w.quiet(w.ids[id]) }) {
		w.wrongly("volume %s is called missing, and nothing was done to its drives: %s", c.name, view.Condition.Message())
	}
}

// quiet says whether nothing but a duplicate is wrong with a drive, nor was lately.
func (w *world) quiet(serial string) bool {
	for what := range w.faults {
		if strings.HasSuffix(what, " "+serial) && !strings.HasPrefix(what, "duplicate ") {
			return false
		}
	}
	ended, was := w.ended[serial]
	return w.isPresent(serial) && (!was || time.Since(ended) > seenWithin("table"))
}

// faultsOf are those that concern a volume and have been there long enough.
func (w *world) faultsOf(c *client) (out []string) {
	var drives []string
	if view, ok := w.e.Volumes().Get(c.volume.ID); ok {
		for _, id := range view.Location.Drives {
			drives = append(drives, w.ids[id])
		}
	}
	for what, since := range w.faults {
		kind, on, _ := strings.Cut(what, " ")
		if limit := seenWithin(kind); time.Since(since) < limit || time.Since(w.started) < limit {
			continue
		}
		if strings.HasPrefix(what, "unmounted ") && len(w.mounts(target(c.volume, "pod"))) > 0 { // it was healed
			continue
		}
		on = strings.TrimPrefix(on, "of ")
		switch {
		case (kind == "unmounted" || kind == "unreadable") && on == c.name && c.used,
			kind != "unmounted" && kind != "unreadable" && slices.Contains(drives, on) && w.hurts(kind, on, c):
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// hurts says whether a fault of a drive concerns a volume on it.
func (w *world) hurts(kind, drive string, c *client) bool {
	if kind == "duplicate" || slices.ContainsFunc(illnesses, func(x illness) bool { return x.fault == kind && !x.shows }) {
		return false
	}
	return kind != "label" || c.volume.Location.VG != "" && w.stands(drive)
}

// stands says whether something that a hand has written over on a drive is still there:
// where no volume had anything, another one may be by now.
func (w *world) stands(drive string) bool {
	for _, d := range w.drives() {
		for _, s := range w.spoiled[drive] {
			if dev := "/dev/" + d.name + s.dev; d.serial == drive && d.present && (s.dev == "" || slices.Contains(w.partitionsOf(d), dev)) && bytes.Equal(w.readRaw(dev, s.off, len(s.left)), s.left) {
				return true
			}
		}
	}
	return false
}

// settle takes back all that is wrong: then every volume can be used, and holds what was
// acknowledged.
func (w *world) settle() string {
	w.arm(0)
	w.recover()
	for _, d := range w.drives() {
		if d.present && slices.ContainsFunc(w.spoiled[d.serial], func(s scar) bool { return s.off < 0 }) {
			w.must(w.inject(d.serial, "vanish", nil))
			w.blankOut(d)
		}
	}
	for _, d := range w.drives() {
		if !d.present {
			w.putBack(d.serial, false)
		}
	}
	time.Sleep(10 * time.Second)
	for serial := range w.spoiled {
		w.restoreScars(serial)
	}
	w.identify()                 // one that was blanked may be its duplicate, which left
	time.Sleep(11 * time.Minute) // every drive was looked at again
	said := w.cancel(nil)
	w.claimAgain()
	time.Sleep(11 * time.Minute)
	w.direct()
	var kept []string
	for _, c := range w.volumes { // all, before one is used: those of a pool wait for each other
		if err := w.disuse(c); err != nil && c.alive() {
			w.wrongly("volume %s cannot be unstaged when all faults are lifted: %v", c.said(nil), err)
		}
	}
	for _, c := range slices.Clone(w.volumes) {
		w.lifted("unmounted " + c.name)
		if !c.alive() {
			continue
		}
		if err := w.again(c); err != nil {
			view, _ := w.e.Volumes().Get(c.volume.ID)
			text := "it is not listed"
			if view != nil {
				text = view.Condition.Message()
			}
			w.wrongly("volume %s cannot be used when all faults are lifted: %v: %s", c.said(nil), err, text)
		}
		kept = append(kept, c.name)
	}
	for _, c := range slices.Clone(w.volumes) { // now no older record with the id of one that is used stands in the way
		if c.doomed {
			w.finish(c)
		}
	}
	return fmt.Sprint(said, kept)
}

// finish goes on with the deletion of a volume until it succeeds, as an operator does.
func (w *world) finish(c *client) {
	err := w.erase(c)
	for try := 0; try < 30 && err != nil; try++ {
		if strings.Contains(err.Error(), "`drivebay release DRIVE`") && try < 3 {
			w.direct()
		} else if drive := toClaim.FindStringSubmatch(err.Error()); drive != nil && try < 3 {
			w.note(0, "claim", drive[1])
			w.locked(func() { w.claimed[w.ids[drive[1]]] = true })
			w.must(w.mgr.Claim(w.Context(), drive[1], true))
		} else if try < 10 && errors.Is(err, drivebay.ErrPending) || strings.HasSuffix(err.Error(), "retry later") { // a move goes on by itself, unless it says what prevents it
			time.Sleep(time.Minute)
		} else if toClear.MatchString(err.Error()) { // either one is to go
			w.note(0, "clear", c.name)
			w.must(w.e.ClearVolume(w.Context(), c.volume.ID))
		} else if w.givesUp(err) {
		} else if errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending) {
			time.Sleep(time.Minute)
		} else {
			break
		}
		err = w.erase(c)
	}
	if err != nil && c.unrecorded { // part of it was removed, and no record says so: an operator gives it up
		forgot := w.e.ForgetVolume(w.Context(), c.volume.ID)
		if err = errors.Join(err, forgot); forgot == nil {
			err, w.volumes = nil, slices.DeleteFunc(w.volumes, func(x *client) bool { return x == c })
		}
	}
	if err != nil {
		w.wrongly("volume %s cannot be deleted when all faults are lifted: %v", c.name, err)
	}
}

// claimAgain claims the drives again that carry volumes: without a claim none is deleted.
func (w *world) claimAgain() {
	for _, d := range w.drives() {
		carries := slices.ContainsFunc(w.e.Volumes().Volumes, func(v *drivebay.VolumeView) bool { return slices.Contains(v.Location.Drives, d.id) }) ||
			slices.ContainsFunc(w.e.Volumes().Found, func(f drivebay.FoundVolume) bool { return slices.Contains(f.Drives, d.id) })
		if !carries || w.claimed[d.serial] {
			continue
		}
		w.locked(func() { w.claimed[d.serial] = true })
		if err := w.mgr.Claim(w.Context(), d.id, true); err != nil {
			w.locked(func() { w.claimed[d.serial] = false })
			w.note(0, "claim", fmt.Sprint(d.serial, ": ", err))
		}
	}
}

// direct says of groups which drive they are to leave where a move was cut short and the drives
// do not say which one it was.
func (w *world) direct() {
	released := map[string]bool{}
	for _, v := range w.e.Volumes().Volumes {
		if strings.Contains(v.Condition.Message(), "MoveUndecided") && !released[v.Location.Drives[0]] {
			released[v.Location.Drives[0]] = true
			w.note(0, "release", fmt.Sprint(w.ids[v.Location.Drives[0]], ": ", w.mgr.Operate(w.Context(), v.Location.Drives[0], drivebay.LeaveRelease, "")))
		}
	}
	if len(released) > 0 {
		time.Sleep(20 * time.Minute)
		w.note(0, "cancel", w.cancel(nil))
		time.Sleep(time.Minute)
	}
}

// again uses a volume from the beginning.
func (w *world) again(c *client) error {
	ctx, cancel := w.limited()
	defer cancel()
	_, err := w.e.Heal(ctx, drivebay.HealRequest{Volume: c.volume.ID, Secrets: c.secrets()})
	if err != nil {
		w.note(0, "heal", c.said(err))
	}
	err = w.use(c)
	for try := 0; try < 3 && err != nil; try++ { // one way out may lead to the next
		err = w.decide(c, err)
	}
	if err != nil {
		return err
	}
	return w.readsWell(c)
}

// readsWell reads all that was written to a volume.
func (w *world) readsWell(c *client) error {
	if !w.opens(c) {
		return errors.New("its device cannot be opened")
	}
	b := make([]byte, pageSize)
	for _, page := range c.touched() {
		if _, err := w.pods[c].disk.ReadAt(b, int64(page)); err != nil {
			return err
		}
	}
	w.readable(c)
	return nil
}

var toClaim = regexp.MustCompile("`drivebay claim ([a-z0-9-]+)`")

var toClear = regexp.MustCompile("`drivebay volume clear [a-z0-9]+` uses the copy on drive ([a-z0-9, -]+); to use the other one, pull drive")

// decide does what an error of a volume asks of an operator. Between two copies of it, where a
// move had ended when its records were lost, he chooses by what was acknowledged.
func (w *world) decide(c *client, err error) error {
	if strings.Contains(err.Error(), "is still mounted at "+target(c.volume, "pod")) { // older records had it published
		return errors.Join(w.unpublish(c.volume, "pod"), w.use(c))
	}
	said, id := toClear.FindStringSubmatch(err.Error()), c.volume.ID
	view, _ := w.e.Volumes().Get(id)
	advised := func(verb string) bool {
		return said == nil && c.unrecorded && view != nil && regexp.MustCompile("`drivebay volume "+verb+" "+id+"( --yes)?`").MatchString(view.Condition.Message())
	}
	named := said == nil && c.unrecorded && slices.Contains(toForget.FindStringSubmatch(err.Error()), id)
	switch {
	case named, advised("forget"): // older records name one that was deleted before
		w.note(0, "forget", id)
		err := w.e.ForgetVolume(w.Context(), id)
		time.Sleep(11 * time.Minute)
		return errors.Join(err, w.use(c))
	case c.unrecorded && errors.Is(err, drivebay.ErrNotFound): // older records say that its id was deleted
		err := w.e.AdoptVolume(w.Context(), id)
		w.note(0, "adopt", c.said(err))
		return errors.Join(err, w.use(c))
	case advised("retry"):
		w.note(0, "retry", id) // older records say that it is being made, or removed
		err := w.e.RetryVolume(w.Context(), id)
		for try := 0; try < 3 && err != nil && w.givesUp(err); try++ { // others that the records name are in its way
			time.Sleep(11 * time.Minute)
			err = w.e.RetryVolume(w.Context(), id)
		}
		if err != nil {
			// Of two volumes of its id, the records name the other one, and by a clock that was ahead it is the newer one.
			ended := w.e.DeleteVolume(w.Context(), id)
			w.note(0, "delete", fmt.Sprintf("%s, which was not made: %v", id, ended))
			if errors.Is(ended, drivebay.ErrUnavailable) { // it is the volume that has no record that is not removed
				ended = nil
			}
			return errors.Join(ended, w.e.AdoptVolume(w.Context(), id), w.use(c))
		}
		return w.use(c)
	}
	if c.unrecorded && view != nil && strings.Contains(err.Error(), "were each used without the other one") {
		return w.choosesLeg(c, view.Location.Drives)
	}
	if said == nil && w.givesUp(err) { // older records name another one of its volume group
		time.Sleep(11 * time.Minute)
		return w.use(c)
	}
	if said == nil {
		return err
	}
	on := strings.Split(said[1], ", ")
	for i := range on {
		on[i] = w.ids[on[i]]
	}
	sameMode := view != nil && view.Mode == c.volume.Mode                                                                                                               // one with another mode is not it, also if nothing was written to it
	if sameMode && !slices.ContainsFunc(on, func(serial string) bool { return w.outdated(c, serial) }) && !strings.Contains(err.Error(), instance(c.volume.Location)) { // the other one is not what the client was given
		w.note(0, "clear", id)
		return errors.Join(w.e.ClearVolume(w.Context(), id), w.use(c))
	}
	others, err := w.disuseOn(on)
	if err != nil {
		return err
	}
	for _, serial := range on {
		w.must(w.inject(serial, "vanish", nil))
	}
	time.Sleep(10 * time.Second)
	w.note(0, "forget", id)
	err = w.e.ForgetVolume(w.Context(), id)
	time.Sleep(11 * time.Minute)
	for _, serial := range on {
		w.putBack(serial, false)
	}
	time.Sleep(11 * time.Minute)
	for _, x := range others {
		err = errors.Join(err, w.again(x))
	}
	return errors.Join(err, w.use(c))
}

// choosesLeg continues with a leg of a mirror that has everything. Older records have one leg alone, as it was then, and the other one has served alone
// since: they do not know that both were equal in between.
func (w *world) choosesLeg(c *client, drives []string) error {
	kept := slices.IndexFunc(drives, func(id string) bool { return !w.outdated(c, w.ids[id]) })
	if kept < 0 || len(drives) != 2 {
		return errors.New("no leg has everything")
	}
	other := w.ids[drives[1-kept]]
	others, err := w.disuseOn([]string{other})
	if err != nil {
		return err
	}
	w.must(w.inject(other, "vanish", nil))
	time.Sleep(10 * time.Second)
	err = w.e.AcceptLoss(w.Context(), c.volume.ID)
	w.note(0, "accept-loss", fmt.Sprintf("%s without %s: %v", c.volume.ID, other, err))
	err = errors.Join(err, w.use(c))
	w.putBack(other, false)
	time.Sleep(11 * time.Minute)
	for _, x := range others {
		err = errors.Join(err, w.again(x))
	}
	return err
}

// disuseOn has the pods on drives end before the drives are pulled: the devices of a pool that
// stay open without their drive keep all volumes of the pool from being used.
func (w *world) disuseOn(drives []string) (ended []*client, err error) {
	for _, c := range w.volumes {
		view, listed := w.e.Volumes().Get(c.volume.ID)
		if c.used && listed && slices.ContainsFunc(view.Location.Drives, func(id string) bool { return slices.Contains(drives, w.ids[id]) }) {
			ended = append(ended, c)
			err = errors.Join(err, w.disuse(c))
		}
	}
	return ended, err
}

// outdated says whether a drive lacks pages of a volume that another one has.
func (w *world) outdated(c *client, drive string) (lacks bool) {
	w.locked(func() {
		for _, number := range c.pages {
			there := false
			for at := range w.marks[number].on {
				there = there || at.drive == drive
			}
			lacks = lacks || !there
		}
	})
	return lacks
}

// blankOut clears a drive that a hand has made a copy.
func (w *world) blankOut(d aDrive) {
	w.must(w.sim.Blank(d.serial, "hand"))
	for _, s := range w.spoiled[d.serial] {
		w.lifted(s.fault)
	}
	delete(w.spoiled, d.serial)
	w.locked(func() { delete(w.keep, d.serial) })
}

var toForget = regexp.MustCompile("`drivebay volume (forget|snapshot-forget) ([a-z0-9]+)(?: --yes)?`")

// givesUp forgets the volume that an error advises to forget, if no client has it:
// only older records say that it is there.
func (w *world) givesUp(err error) bool {
	said := toForget.FindStringSubmatch(err.Error())
	if said == nil || slices.ContainsFunc(w.volumes, func(c *client) bool { return c.alive() && c.volume.ID == said[2] }) {
		return false
	}
	forget := w.e.ForgetVolume
	if said[1] == "snapshot-forget" {
		forget = w.e.ForgetSnapshot
	}
	forgot := forget(w.Context(), said[2])
	w.note(0, said[1], fmt.Sprintf("%s: %v", said[2], forgot))
	return forgot == nil
}
