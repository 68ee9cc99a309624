package machine

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// starter starts processes from one thread that never ends: the signal that a
// process gets at the death of its parent (prctl(2), PR_SET_PDEATHSIG) comes
// when the thread ends that started it.
var starter = func() chan func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
}()

func startLocked(cmd *exec.Cmd) error {
	result := make(chan error)
	starter <- func() { result <- cmd.Start() }
	return <-result
}

const dirPrefix = "drivebay-lab-"

// makeDir makes the machine's folder and removes those of machines whose
// program was killed: nobody holds their lock any more.
func (m *Machine) makeDir() error {
	// One program at a time: what is made and not yet locked looks abandoned.
	tmp, err := os.Open(os.TempDir())
	if err != nil {
		return err
	}
	defer tmp.Close()
	if err := syscall.Flock(int(tmp.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", tmp.Name(), err)
	}
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range old {
		if f, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			f.Close()
		}
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return err
	}
	m.Dir = dir
	m.lock, err = lockDir(dir)
	return err
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// makeDisks makes the blank disks, as files with nothing in them, and says which
// PCI slots the drives go into.
func (m *Machine) makeDisks() error {
	if m.spec.Link != nil {
		m.taken[slots] = linkID
	}
	// Those that want a certain slot get it before the others take one.
	drives := slices.Clone(m.spec.Drives)
	slices.SortStableFunc(drives, func(a, b Drive) int { return cmp.Compare(min(b.Slot, 1), min(a.Slot, 1)) })
	for _, d := range drives {
		if m.drives[d.ID] != nil {
			continue // the machine was there before a power cut
		}
		if err := m.adopt(d); err != nil {
			return err
		}
	}
	return nil
}

// adopt gives a drive its file and its slots.
func (m *Machine) adopt(d Drive) error {
	if d.File == "" {
		d.File = filepath.Join(m.Dir, d.ID+".img")
		f, err := os.OpenFile(d.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Truncate(d.Size); err != nil {
			return fmt.Errorf("make a disk of %d bytes: %w", d.Size, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &drive{Drive: d}
	if d.Kind == NVMe || d.Kind == Virtio {
		var err error
		if out.slots, err = m.takeSlots(d); err != nil {
			return err
		}
	}
	out.devices = devices(d, out.slots)
	m.drives[d.ID] = out
	return nil
}

func (m *Machine) takeSlots(d Drive) ([]int, error) {
	first := d.Slot
	for s := 1; first == 0 && s+d.Paths-1 <= slots; s++ {
		if m.free(s, d.Paths) {
			first = s
		}
	}
	if first == 0 || first+d.Paths-1 > slots || !m.free(first, d.Paths) {
		return nil, fmt.Errorf("no free PCI slot for %s", d.ID)
	}
	var out []int
	for i := range d.Paths {
		m.taken[first+i] = d.ID
		out = append(out, first+i)
	}
	return out, nil
}

func (m *Machine) free(first, n int) bool {
	for i := range n {
		if m.taken[first+i] != "" {
			return false
		}
	}
	return true
}
