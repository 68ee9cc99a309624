package hostsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// Machine is a simulated host.Machine. Close stops its script.
type Machine struct {
	name    string
	claim   string
	clock   host.Clock
	boot    time.Time
	without []string // programs that are not installed

	mu      sync.RWMutex // guards everything below and every drive
	tree    *tree
	drives  []*drive
	bays    []*bay
	hosts   int // SCSI hosts allocated
	byName  map[string]*drive
	highest map[string]int // kernel name letters -> the lowest index that was never used
	system  system
	seq     uint64 // of uevents
	stats   Stats

	devices   map[string]*device // by kernel name
	ghosts    []ghost
	fds       fds
	mounts    []*mount
	mountsAt  map[string][]*mount // by path
	lastMount int
	boots     int
	anonymous int                       // anonymous device numbers allocated
	own       map[string]host.PlaceKind // folders and files outside the drives' filesystems
	written   map[string]bool           // files with content, by path
	physical  map[string]*pv            // of LVM, by UUID
	kill      int                       // point at which the next lvm command is killed; 0: it is not
	watch     func(Write)               // nil: writes are not reported
	writer    string                    // of the write in progress

	uevents feed[host.Uevent]
	klog    feed[host.LogLine]
	stop    context.CancelFunc
	busy    sync.WaitGroup // the script and storms
	ctx     context.Context
}

// Option changes how New makes a machine.
type Option func(*Machine)

// WithClock gives the machine a clock. The default is the real clock.
func WithClock(c host.Clock) Option { return func(m *Machine) { m.clock = c } }

// New returns a machine and starts its script.
func New(spec Spec, opts ...Option) (*Machine, error) {
	m := &Machine{name: cmp.Or(spec.Machine, "simulated"), claim: spec.Claim, without: spec.Without, clock: wall{}, tree: newTree(), byName: map[string]*drive{}, devices: map[string]*device{}, own: map[string]host.PlaceKind{}, physical: map[string]*pv{}, mountsAt: map[string][]*mount{}, highest: map[string]int{}}
	for _, o := range opts {
		o(m)
	}
	m.boot = m.clock.Now()
	m.uevents.lost, m.klog.lost = host.Uevent{Overflow: true}, host.LogLine{Overflow: true}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.build(&spec); err != nil {
		m.stop()
		return nil, fmt.Errorf("simulated machine %s: %w", m.name, err)
	}
	if len(spec.Script) > 0 {
		steps := slices.Clone(spec.Script)
		slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.After, b.After) })
		m.busy.Go(func() { m.play(steps) })
	}
	return m, nil
}

// build adds the bays and the drives.
func (m *Machine) build(spec *Spec) error {
	m.tree.keep("sys/block", "sys/class/block", "sys/class/nvme", "sys/class/nvme-subsystem", "sys/class/scsi_device", "sys/class/scsi_host",
		"sys/class/scsi_generic", "sys/class/enclosure", "sys/bus/pci/slots", "sys/bus/pci/devices", "sys/dev/block", "sys/devices/virtual/block",
		"run/udev/data", "proc/self", "proc/1", "sys/fs/ext4", "dev")
	if !slices.Contains(m.without, "dm-crypt") {
		m.tree.keep("sys/module/dm_crypt")
	}
	for i := range spec.Enclosures {
		if err := m.addEnclosure(&spec.Enclosures[i]); err != nil {
			return fmt.Errorf("enclosures[%d]: %w", i, err)
		}
	}
	for i := range spec.Drives {
		if err := m.addGroup(&spec.Drives[i]); err != nil {
			return fmt.Errorf("drives[%d]: %w", i, err)
		}
	}
	if err := m.findSystem(); err != nil {
		return err
	}
	for _, d := range m.drives {
		d.plug(false)
	}
	m.buildProc()
	for i, s := range spec.Script {
		if err := m.check(&s.Fault); err != nil || s.After < 0 {
			return fmt.Errorf("script[%d]: %w", i, cmp.Or(err, fmt.Errorf("after %v is in the past", s.After)))
		}
	}
	return nil
}

// maxDrives limits a machine, so that a typing error does not fill the memory.
const maxDrives = 1000

// addGroup adds the drives of a group.
func (m *Machine) addGroup(g *Group) error {
	k := kinds[g.Kind]
	if k == nil {
		return fmt.Errorf("kind %q: want one of nvme, sata-hdd, sata-ssd, sas-hdd, sas-ssd, virtio, usb", g.Kind)
	}
	if g.Count < 0 || g.Count+len(m.drives) > maxDrives {
		return fmt.Errorf("count %d: want 1 to %d drives in all", g.Count, maxDrives)
	}
	places := make([]*bay, g.Count)
	if g.Bays != "" {
		if g.Count != 0 {
			return fmt.Errorf("both bays and count: give one of them")
		}
		numbers, err := parseRange(g.Bays)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			b, err := m.bayFor(k, g.Enclosure, n)
			if err != nil {
				return err
			}
			places = append(places, b)
		}
	}
	if len(places) == 0 {
		return fmt.Errorf("no drives: give bays or count")
	}
	for _, b := range places {
		d, err := m.newDrive(g, k, b)
		if err != nil {
			return err
		}
		if b != nil {
			b.drive = d
		}
		m.drives = append(m.drives, d)
	}
	return nil
}

// freeIndex returns the lowest free index of kernel names, or the lowest that was never used.
func (m *Machine) freeIndex(letters string, paths int, unused bool) int {
	taken := map[int]bool{}
	for _, d := range m.drives {
		if d.present && d.kind.letters == letters {
			for p := range d.paths {
				taken[d.index+p] = true
			}
		}
	}
	m.ghosts = slices.DeleteFunc(m.ghosts, func(g ghost) bool { return !g.haunts() })
	for _, g := range m.ghosts {
		if g.letters == letters {
			taken[g.index] = true
		}
	}
	n := 0
	if unused {
		n = m.highest[letters]
	}
	for taken[n] || taken[n+paths-1] {
		n++
	}
	m.highest[letters] = max(m.highest[letters], n+paths)
	return n
}

// Describe implements host.Machine.
func (m *Machine) Describe() host.Description {
	return host.Description{Name: m.name, Kind: "simulated"}
}

// Claim returns the description's selectors of the drives that may be used for volumes, for the server
// of the machine.
func (m *Machine) Claim() string { return m.claim }

// Now implements host.Clock.
func (m *Machine) Now() time.Time { return m.clock.Now() }

// After implements host.Clock.
func (m *Machine) After(d time.Duration) <-chan time.Time { return m.clock.After(d) }

// Uevents implements host.Machine.
func (m *Machine) Uevents(ctx context.Context) (<-chan host.Uevent, error) {
	return m.uevents.listen(ctx), nil
}

// KernelLog implements host.Machine.
func (m *Machine) KernelLog(ctx context.Context) (<-chan host.LogLine, error) {
	return m.klog.listen(ctx), nil
}

// Close stops the script and uevent storms.
func (m *Machine) Close() {
	m.stop()
	m.busy.Wait()
}

// pause waits on the machine's clock. It returns false if the machine is closed first.
func (m *Machine) pause(d time.Duration) bool {
	select {
	case <-m.clock.After(d):
		return true
	case <-m.ctx.Done():
		return false
	}
}
