package tcmu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// target is where the kernel's SCSI target is configured
// (Documentation/target/tcmu-design.rst, tcm_mod_builder.rst).
const target = "/sys/kernel/config/target"

// backstore is the folder of a device whose commands go to user space.
func backstore(name string) string { return filepath.Join(target, "core/user_0", name) }

// subtype is what the kernel calls our handler; it stands in the name of the uio
// device.
const subtype = "drivebay"

// dataArea is what commands in flight may hold, in MiB: a queue of them, each of
// the largest size.
const dataArea = queueDepth*maxTransfer>>20 + 16

const (
	queueDepth  = 32 // of SATA drives
	maxTransfer = 512 << 10
)

// makeBackstore creates and enables one.
func makeBackstore(name string, size uint64, block int) error {
	dir := backstore(name)
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("%s is there already: another emulator serves it, or died", dir)
	}
	if err := makeFolders(dir); err != nil {
		return err
	}
	control := fmt.Sprintf("dev_config=%s/%s,dev_size=%d,hw_block_size=%d,max_data_area_mb=%d", subtype, name, size, block, dataArea)
	return inOrder(
		func() error { return set(dir, "control", control) },
		func() error { return set(dir, "enable", "1") },
		// The kernel gives nothing up on its own account; whether a command that hangs
		// comes back is for its initiator to say.
		func() error { return set(dir, "attrib/cmd_time_out", "0") },
		func() error { return set(dir, "attrib/tmr_notification", "1") },
	)
}

// making is held while folders are made. One that somebody else is just making is
// hidden until it is complete, and what is made in it fails with "no such file"
// (fs/configfs/dir.c, configfs_dirent_is_ready).
var making sync.Mutex

func makeFolders(dir string) error {
	making.Lock()
	defer making.Unlock()
	return os.MkdirAll(dir, 0o755)
}

func removeBackstore(name string) error { return os.Remove(backstore(name)) }

// port is a place on a SCSI host of tcm_loop: one target port, with one logical
// unit while something is plugged into it.
type port struct {
	host   int // counted by us; the kernel's number is in the address
	target int
}

func (p port) folder() string {
	return filepath.Join(target, "loopback", p.wwn(0), fmt.Sprintf("tpgt_%d", p.target))
}

// wwn is a name of the target, or of the initiator that talks to it.
func (p port) wwn(initiator int) string {
	return fmt.Sprintf("naa.5001405%d%08x", initiator, p.host)
}

func (p port) make() error {
	if err := makeFolders(p.folder()); err != nil {
		return err
	}
	return set(p.folder(), "nexus", p.wwn(1))
}

// plug makes the logical unit, whereupon the kernel scans it: the device must be
// served by then.
func (p port) plug(name string) error {
	lun := filepath.Join(p.folder(), "lun/lun_0")
	if err := os.Mkdir(lun, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Symlink(backstore(name), filepath.Join(lun, name))
}

// unplug takes it away. The kernel removes the SCSI device meanwhile, with all
// that it still wants from it.
func (p port) unplug(name string) error {
	lun := filepath.Join(p.folder(), "lun/lun_0")
	if err := os.Remove(filepath.Join(lun, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(lun); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p port) remove() error {
	err := os.Remove(p.folder())
	// The host goes with its last port.
	if last := os.Remove(filepath.Dir(p.folder())); err == nil && last != nil && !errors.Is(last, fs.ErrExist) && !strings.Contains(last.Error(), "not empty") {
		err = last
	}
	return err
}

// address is host:channel:target:lun of the port's logical unit.
func (p port) address() (string, error) {
	b, err := os.ReadFile(filepath.Join(p.folder(), "address"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)) + ":0", nil
}

// set writes one attribute of configfs.
func set(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("set %s to %q: %w", name, value, err)
	}
	return nil
}

// inOrder runs steps up to the first that fails.
func inOrder(steps ...func() error) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}
