package volume_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// illTools is a machine whose programs fail, as those of a machine that swaps, or whose LVM was updated, do.
type illTools struct {
	*hostsim.Machine
	mu    sync.Mutex
	mode  string // "": they are well
	every int    // one call of so many is ill
	calls int
}

func (m *illTools) set(mode string, every int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode, m.every = mode, every
}

func (m *illTools) is() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mode
}

// next is what happens to the next call.
func (m *illTools) next() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.mode == "" || m.calls%m.every != 0 {
		return ""
	}
	return m.mode
}

func (m *illTools) call(ctx context.Context, program string, run func() ([]byte, error)) ([]byte, error) {
	failed := fmt.Errorf("%s: exit status 5", program)
	switch m.next() {
	case "fails":
		return nil, failed
	case "fails after its work":
		_, _ = run()
		return nil, failed
	case "says less":
		out, err := run()
		return append([]byte("Retrying metadata scan.\n"), out[:len(out)/2]...), err
	case "hangs":
		for m.is() == "hangs" {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
	return run()
}

func (m *illTools) Run(ctx context.Context, argv ...string) ([]byte, error) {
	return m.call(ctx, argv[0], func() ([]byte, error) { return m.Machine.Run(ctx, argv...) })
}

func (m *illTools) RunInput(ctx context.Context, in []byte, argv ...string) ([]byte, error) {
	return m.call(ctx, argv[0], func() ([]byte, error) { return m.Machine.RunInput(ctx, in, argv...) })
}

// ailTools lets the programs fail, or be well again.
func (w *world) ailTools(r *rand.Rand) string {
	if w.tools.is() != "" {
		w.tools.set("", 0)
		return "well"
	}
	mode, every := []string{"fails", "fails after its work", "says less", "hangs"}[r.IntN(4)], []int{1, 2, 5}[r.IntN(3)]
	w.tools.set(mode, every)
	return fmt.Sprintf("one of %d %s", every, mode)
}

// fillDisk fills the disk of the store, or makes room on it.
func (w *world) fillDisk(*rand.Rand) string {
	w.full = !w.full
	w.over.(*fullStore).fill(w.full)
	return fmt.Sprint(w.full)
}

// passes lets programs be well again, and makes room on the disk, after some steps.
func (w *world) passes(r *rand.Rand) {
	if r.IntN(4) == 0 {
		w.tools.set("", 0)
	}
	if w.full && r.IntN(4) == 0 {
		w.fillDisk(r)
	}
}

// illness is a fault of a drive that goes by itself, or is healed.
type illness struct {
	fault string
	args  hostsim.Args
	shows bool // as a fault of each volume on the drive
}

var illnesses = []illness{
	{"eio", nil, false}, {"eio", hostsim.Args{"write": "true"}, false}, {"hang", nil, false}, {"slow", hostsim.Args{"delay": "2s"}, false},
	{"read-only", nil, false}, {"permission", nil, false}, {"offline", nil, true}, {"nvme-dead", nil, true}, {"resize", nil, false},
}

// mostIll is how many drives are ill at a time.
const mostIll = 2

// ail makes a drive ill, or heals one.
func (w *world) ail(r *rand.Rand) string {
	var ill []string
	for _, d := range w.drives() {
		if w.illnessOf(d.serial) != "" {
			ill = append(ill, d.serial)
		}
	}
	if len(ill) == mostIll || len(ill) > 0 && r.IntN(2) == 0 {
		return w.healDrive(ill[r.IntN(len(ill))])
	}
	d := w.anyDrive(r, func(s string) bool { return w.whole(s) && w.isPresent(s) && !strings.HasPrefix(s, "OTHER") })
	x := illnesses[r.IntN(len(illnesses))]
	after := []time.Duration{5 * time.Second, 40 * time.Second, 3 * time.Minute}[r.IntN(3)]
	if d.name == "" || w.without[x.fault] || w.inject(d.serial, x.fault, x.args) != nil { // not each drive can have each
		return "-"
	}
	w.fault(x.fault + " " + d.serial)
	if x.fault != "hang" && x.fault != "slow" {
		return fmt.Sprint(d.serial, " ", x.fault, x.args)
	}
	w.heals[d.serial] = time.AfterFunc(after, func() { // those that wait for it would wait for ever
		_ = w.sim.Inject(hostsim.Fault{Drive: d.serial, Fault: "heal"})
	})
	return fmt.Sprint(d.serial, " ", x.fault, " for ", after)
}

func (w *world) illnessOf(serial string) string {
	for _, x := range illnesses {
		if _, is := w.faults[x.fault+" "+serial]; is {
			return x.fault
		}
	}
	return ""
}

func (w *world) healDrive(serial string) string {
	fault := w.illnessOf(serial)
	w.lifted(fault + " " + serial)
	if t := w.heals[serial]; t != nil {
		t.Stop()
	}
	err := w.inject(serial, "heal", nil)
	for _, d := range w.drives() {
		if d.serial == serial && fault == "resize" && d.present { // in another bay the kernel has read what was left of its table
			w.reread(d)
		}
	}
	return fmt.Sprint(serial, " has no ", fault, " any more: ", err)
}

// inject injects a fault into a drive, whatever serial number it shows.
func (w *world) inject(serial, fault string, args hostsim.Args) error {
	f := hostsim.Fault{Drive: serial, Fault: fault, Args: args}
	if slices.Contains(w.duplicateOf[:], serial) {
		f.Drive, f.Bay = "", w.bayOf(serial)
	}
	return w.sim.Inject(f)
}

// otherBay puts a drive into another bay; where there is one, both change places.
func (w *world) otherBay(r *rand.Rand) string {
	d := w.anyDrive(r, func(s string) bool { return w.whole(s) && w.isPresent(s) })
	if d.name == "" {
		return "-"
	}
	to := []string{"7", "8", "14", "1", "2", "12"}[r.IntN(6)]
	err := w.inject(d.serial, "move", hostsim.Args{"to": to})
	if err != nil {
		err = w.inject(d.serial, "swap", hostsim.Args{"with": to})
	}
	return fmt.Sprint(d.serial, " to bay ", to, ": ", err)
}

func (w *world) cordon(r *rand.Rand) string {
	d, on := w.anyDrive(r, func(s string) bool { return w.claimed[s] }), r.IntN(2) == 0
	return fmt.Sprint(d.serial, " ", on, ": ", w.mgr.Cordon(w.Context(), d.id, on))
}

// cutPower restarts the machine with nothing mounted: pods and kubelet begin anew.
func (w *world) cutPower(*rand.Rand) string {
	for _, c := range w.volumes {
		w.letGo(c)
	}
	w.shutDown()
	for _, c := range w.volumes {
		w.lifted("unmounted " + c.name)
		c.used, c.staged, c.doubtful = false, false, true
	}
	all, err := w.sim.Mounts(w.Context())
	w.must(err)
	for _, m := range slices.Backward(all) {
		if strings.HasPrefix(m.Target, kubelet+"/") {
			w.must(w.sim.UnmountBehind(m.Target))
		}
	}
	for _, c := range w.volumes {
		if _, open := w.plain(c.volume); open && c.key != "" {
			_, err := w.sim.Run(w.Context(), "cryptsetup", "close", "drivebay-"+c.volume.ID)
			w.must(err)
		}
	}
	w.sim.PowerCut()
	w.sim.NextBoot()
	w.boot()
	return "the machine"
}

// duplicateSerial gives a drive that holds nothing the serial number of another one, as a batch that was labelled wrongly has it. It ends that of one that has it.
func (w *world) duplicateSerial(r *rand.Rand) string {
	if w.duplicateOf[1] != "" {
		return w.endDuplicate()
	}
	of := w.anyDrive(r, func(s string) bool { return w.claimed[s] && w.whole(s) && w.isPresent(s) && !w.empty(s) })
	d := w.anyDrive(r, func(s string) bool {
		return s != of.serial && w.whole(s) && w.isPresent(s) && w.empty(s) && !w.named(s)
	})
	if of.name == "" || d.name == "" || of.name[:2] != d.name[:2] || len(w.sim.Written("/dev/"+d.name)) > 0 {
		return "-"
	}
	w.locked(func() { w.keep[d.serial] = []extent{{0, d.size}} })
	w.must(w.inject(d.serial, "duplicate-serial", hostsim.Args{"of": w.bayOf(of.serial)}))
	w.fault("duplicate " + of.serial)
	w.fault("duplicate " + d.serial)
	w.duplicateOf = [2]string{of.serial, d.serial}
	return fmt.Sprint(d.serial, " of ", of.serial)
}

func (w *world) bayOf(serial string) string { return w.sim.View()[slices.Index(w.born, serial)].Bay }

func (w *world) endDuplicate() string {
	of, serial := w.duplicateOf[0], w.duplicateOf[1]
	w.must(w.inject(serial, "change-serial", hostsim.Args{"serial": serial}))
	w.duplicateOf = [2]string{}
	w.lifted("duplicate " + of)
	w.lifted("duplicate " + serial)
	w.locked(func() { delete(w.keep, serial) })
	return serial + " is itself"
}

// recover ends all that is wrong with drives, programs and the disk of the store.
func (w *world) recover() {
	for _, d := range w.drives() {
		if w.illnessOf(d.serial) != "" {
			w.healDrive(d.serial)
		}
	}
	if w.duplicateOf[1] != "" {
		w.endDuplicate()
	}
	w.tools.set("", 0)
	w.full = false
	w.over.(*fullStore).fill(false)
	time.Sleep(time.Minute)
	w.identify()
	for _, d := range w.mgr.Snapshot().Drives {
		if d.Cordoned {
			w.must(w.mgr.Cordon(w.Context(), d.ID, false))
		}
	}
}

var toForgetDrive = regexp.MustCompile("run `drivebay forget ([a-z0-9-]+-at-[a-z0-9]+)`")

// identify ends that a drive cannot be identified, though its duplicate is gone: the records are older than what it holds. Where it was
// recorded under another id meanwhile, that is forgotten.
func (w *world) identify() {
	for _, d := range w.mgr.Snapshot().Drives {
		if other := toForgetDrive.FindStringSubmatch(d.Copy); other != nil {
			w.note(0, "forget", other[1])
			w.must(w.mgr.Operate(w.Context(), other[1], drivebay.LeaveForget, ""))
		}
	}
	for _, d := range w.mgr.Snapshot().Drives {
		if d.Status != drivebay.StatusUnknown || !strings.Contains(d.IdentityIssue, "cannot be identified") {
			continue
		}
		w.note(0, "identify", d.ID)
		w.must(w.inject(d.Serial, "vanish", nil))
		time.Sleep(10 * time.Second)
		for _, o := range w.mgr.Snapshot().Drives {
			if strings.HasPrefix(o.ID, d.ID+"-at-") {
				w.must(w.mgr.Operate(w.Context(), o.ID, drivebay.LeaveForget, ""))
			}
		}
		w.must(w.inject(d.Serial, "return", nil))
		time.Sleep(time.Minute)
	}
}

// encrypt makes a third of the volumes encrypted ones.
func (c *client) encrypt(r *rand.Rand) {
	if r.IntN(3) != 0 {
		return
	}
	c.key = fmt.Sprint("key of ", c.number)
	c.request.Class.Encryption = drivebay.EncryptionLUKS2
	c.request.Secrets = secrets(c.key)
	c.request.Size.Required = max(c.request.Size.Required, 192<<20)
}

func (c *client) secrets() drivebay.Secrets {
	if c.key == "" {
		return nil
	}
	return secrets(c.key)
}

// unlock stages a volume with its key; where a rotation was cut short, with the one or the other.
func (w *world) unlock(c *client) error {
	if c.key == "" {
		return w.stage(c.volume)
	}
	err := w.stage(c.volume, with(c.key))
	if errors.Is(err, drivebay.ErrSecret) && c.next != "" {
		if err = w.stage(c.volume, with(c.next)); err == nil {
			c.key, c.next = c.next, ""
		}
	}
	return err
}

// rotate replaces the key of a volume, or goes on with that.
func (w *world) rotate(r *rand.Rand) string {
	c := w.one(r, func(c *client) bool { return c.alive() && c.key != "" })
	if c == nil {
		return "-"
	}
	if c.next == "" {
		w.names++
		c.next = fmt.Sprint("key ", w.names)
	}
	ctx, cancel := w.limited()
	defer cancel()
	err := w.e.RotateKey(ctx, drivebay.KeyRequest{Volume: c.volume.ID, Secrets: secrets(c.key), New: secrets(c.next)})
	if err == nil {
		c.key, c.next = c.next, ""
	}
	return c.said(err)
}
