package hostsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/drbd"
	"github.com/drivebay/drivebay/internal/hostsim/internal/faults"
	"github.com/drivebay/drivebay/internal/hostsim/internal/filesystem"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/lvm"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Machine is a simulated host.Machine. Close stops its script.
type Machine struct {
	name  string
	claim string
	runs  int // programs started

	*files                  // host.Files
	*mounter                // host.Mounter
	kernel   *kernel.Kernel // its lock guards everything
	devices  *block.Devices
	lvm      *lvm.State
	drbd     *drbd.System
	faults   *faults.Injector
	programs map[string]program.Program
}

var _ host.Machine = (*Machine)(nil)

// The parts whose methods are methods of the machine.
type (
	files   = sysfs.Files
	mounter = filesystem.Mounter
)

// Option changes how New makes a machine.
type Option func(*options)

type options struct{ clock host.Clock }

// WithClock gives the machine a clock. The default is the real clock.
func WithClock(c host.Clock) Option { return func(o *options) { o.clock = c } }

// New returns a machine and starts its script.
func New(spec Spec, opts ...Option) (*Machine, error) {
	o := options{clock: kernel.WallClock{}}
	for _, set := range opts {
		set(&o)
	}
	m := &Machine{name: cmp.Or(spec.Machine, "simulated"), claim: spec.Claim, kernel: kernel.New(o.clock, spec.Without)}
	m.devices = block.New(m.kernel)
	m.drbd = drbd.New(m.devices)
	m.mounter, m.lvm, m.files = filesystem.New(m.devices), lvm.New(m.devices), sysfs.NewFiles(m.kernel.Tree, &m.kernel.Mu)
	m.faults = faults.New(m.devices, m.mounter)
	m.programs = m.installed()
	if m.kernel.Lacks("udev") {
		m.files.Missing = "run/udev/"
	}
	if err := m.build(&spec); err != nil {
		m.kernel.Stop()
		return nil, fmt.Errorf("simulated machine %s: %w", m.name, err)
	}
	if len(spec.Script) > 0 {
		steps := slices.Clone(spec.Script)
		slices.SortStableFunc(steps, func(a, b TimedFault) int { return cmp.Compare(a.After, b.After) })
		m.kernel.Busy.Go(func() { m.play(steps) })
	}
	return m, nil
}

// build adds the bays and the drives, and checks the script.
func (m *Machine) build(spec *Spec) error {
	m.kernel.Tree.Keep("sys/block", "sys/class/block", "sys/class/nvme", "sys/class/nvme-subsystem", "sys/class/scsi_device", "sys/class/scsi_host",
		"sys/class/scsi_generic", "sys/class/enclosure", "sys/bus/pci/slots", "sys/bus/pci/devices", "sys/dev/block", "sys/devices/virtual/block",
		"run/udev/data", "proc/self", "proc/1", "sys/fs/ext4", "dev")
	if !m.kernel.Lacks("dm-crypt") {
		m.kernel.Tree.Keep("sys/module/dm_crypt")
	}
	if err := m.devices.Build(spec.Enclosures, spec.Drives); err != nil {
		return err
	}
	filesystem.Boot(m.mounter, m.name)
	m.putFirmware()
	for i, s := range spec.Script {
		if err := m.faults.Check(&s.Fault); err != nil || s.After < 0 {
			return fmt.Errorf("script[%d]: %w", i, cmp.Or(err, fmt.Errorf("after %v is in the past", s.After)))
		}
	}
	return nil
}

// Describe implements host.Machine.
func (m *Machine) Describe() host.Description {
	return host.Description{Name: m.name, Kind: "simulated"}
}

// Claim returns the description's selectors of the drives that may be used for volumes, for the server
// of the machine.
func (m *Machine) Claim() string { return m.claim }

// Close stops the script and uevent storms.
func (m *Machine) Close() {
	m.kernel.Stop()
	m.kernel.Busy.Wait()
}

// Uevents implements host.Machine.
func (m *Machine) Uevents(ctx context.Context) (<-chan host.Uevent, error) {
	return m.kernel.Uevents.Listen(ctx), nil
}

// KernelLog implements host.Machine.
func (m *Machine) KernelLog(ctx context.Context) (<-chan host.LogLine, error) {
	return m.kernel.Log.Listen(ctx), nil
}

// Now implements host.Clock.
func (m *Machine) Now() time.Time { return m.kernel.Clock.Now() }

// After implements host.Clock.
func (m *Machine) After(d time.Duration) <-chan time.Time { return m.kernel.Clock.After(d) }

// EndKernelLog ends the kernel log for all its readers. They can open it again.
func (m *Machine) EndKernelLog() { m.kernel.Log.End() }

// WriteKernelLog adds a line to the kernel log.
func (m *Machine) WriteKernelLog(text string) {
	m.kernel.Log.Send(host.LogLine{At: m.kernel.Clock.Now(), Priority: kernel.LevelErr, Text: text})
}

// LoseKernelLog reports to readers of the kernel log that lines were overwritten before they were
// read.
func (m *Machine) LoseKernelLog() {
	m.kernel.Log.Send(host.LogLine{At: m.kernel.Clock.Now(), Priority: kernel.LevelInfo, Text: "lines before this one were lost", Overflow: true})
}

// NextBoot sets a new boot ID, as a restart of the machine does. The caller ensures that nothing is
// mounted.
func (m *Machine) NextBoot() {
	m.kernel.Mu.Lock()
	defer m.kernel.Mu.Unlock()
	m.kernel.NextBoot()
}

// OpenDrive implements host.Machine.
func (m *Machine) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	return m.devices.OpenDrive(ctx, dev)
}

// OpenDisk implements host.Disks.
func (m *Machine) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	return m.devices.OpenDisk(ctx, dev, alone)
}

// Inject applies a fault.
func (m *Machine) Inject(f faults.Fault) error { return m.faults.Inject(f) }

// Watch calls f after every write, until Watch(nil). The machine is locked during the call: f must not
// call it.
func (m *Machine) Watch(f func(block.Write)) { m.devices.Watch(f) }

// Copy copies all bytes of a drive to another, as dd(1) does. Both are named by serial number. The
// kernel reads the new partition table when the drive reappears.
func (m *Machine) Copy(from, to, by string) error { return m.devices.Copy(from, to, by) }

// Blank sets all bytes of a drive to zeros.
func (m *Machine) Blank(serial, by string) error { return m.devices.Blank(serial, by) }

// Written lists the pages of a device that do not read as zeros, by offset.
func (m *Machine) Written(dev string) []uint64 { return m.devices.Written(dev) }

// KillNext kills the next lvm command at its nth point: after it committed metadata, activated or
// wiped something.
func (m *Machine) KillNext(n int) { m.lvm.KillNext(n) }

// PowerCut removes the devices of LVM and DRBD as a power loss does: no superblock is written. Nothing may be
// mounted on them.
func (m *Machine) PowerCut() {
	m.drbd.PowerCut()
	m.lvm.PowerCut()
}

// DRBD opens the kernel's DRBD, if its module is loaded.
func (m *Machine) DRBD() (api.Kernel, error) { return m.drbd.Open() }

// Join lays a network between the DRBD of two machines, and returns what cuts it and mends it.
func Join(a, b *Machine) (setUp func(bool)) { return drbd.Join(a.drbd, b.drbd).SetUp }
