package hostsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// kernel is what all parts of a machine share: the lock, the clock, the files, the events and the log.
type kernel struct {
	mu      sync.RWMutex // guards the whole machine
	tree    *sysfs.Tree
	clock   host.Clock
	without []string // programs that are not installed, and parts of the kernel that are missing

	uevents feed[host.Uevent]
	klog    feed[host.LogLine]
	seq     uint64 // of uevents
	boots   int

	stop context.CancelFunc
	busy sync.WaitGroup // what runs until the machine is closed
	ctx  context.Context
}

// newKernel returns the kernel of a machine that starts now.
func newKernel(clock host.Clock, without []string) *kernel {
	k := &kernel{tree: sysfs.NewTree(), clock: clock, without: without}
	k.uevents.lost, k.klog.lost = host.Uevent{Overflow: true}, host.LogLine{Overflow: true}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// lacks reports whether a program or a part of the kernel is missing.
func (k *kernel) lacks(what string) bool { return slices.Contains(k.without, what) }

// logf writes a line of the kernel log.
func (k *kernel) logf(priority int, format string, args ...any) {
	k.klog.send(host.LogLine{At: k.clock.Now(), Priority: priority, Text: fmt.Sprintf(format, args...)})
}

func (k *kernel) uevent(action, subsystem, path, name string, env map[string]string) {
	all := map[string]string{"ACTION": action, "SUBSYSTEM": subsystem, "DEVPATH": strings.TrimPrefix(path, "sys"), "SEQNUM": fmt.Sprint(k.nextSeq())}
	for key, v := range env {
		all[key] = v
	}
	if name != "" {
		all["DEVNAME"] = name
	}
	k.uevents.send(host.Uevent{Action: action, Subsystem: subsystem, DevPath: all["DEVPATH"], DevName: name, Env: all})
}

func (k *kernel) nextSeq() uint64 {
	k.seq++
	return k.seq
}

// pause waits on the machine's clock. It returns false if the machine is closed first.
func (k *kernel) pause(d time.Duration) bool {
	select {
	case <-k.clock.After(d):
		return true
	case <-k.ctx.Done():
		return false
	}
}

func (k *kernel) nextBoot() {
	k.boots++
	k.tree.Put("proc/sys/kernel/random/boot_id", &sysfs.Node{Text: fmt.Sprintf("5cd0e2a6-0f1e-4f0b-8a52-%012x\n", k.boots)})
}

// Priorities of log lines (include/linux/kern_levels.h).
const (
	levelErr  = 3
	levelWarn = 4
	levelInfo = 6
)

// Errors of system calls.
var (
	errIO      = errors.New("input/output error")
	errInvalid = errors.New("invalid argument")
	errNoSpace = errors.New("no space left on device")
)
