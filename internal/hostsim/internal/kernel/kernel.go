package kernel

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

// Kernel is what all parts of a machine share: the lock, the clock, the files, the events and the log.
type Kernel struct {
	Mu      sync.RWMutex // guards the whole machine
	Tree    *sysfs.Tree
	Clock   host.Clock
	Without []string // programs that are not installed, and parts of the kernel that are missing

	Uevents feed[host.Uevent]
	Log     feed[host.LogLine]
	seq     uint64 // of uevents
	boots   int

	Stop context.CancelFunc
	Busy sync.WaitGroup // what runs until the machine is closed
	ctx  context.Context
}

// New returns the kernel of a machine that starts now.
func New(clock host.Clock, without []string) *Kernel {
	k := &Kernel{Tree: sysfs.NewTree(), Clock: clock, Without: without}
	k.Uevents.Lost, k.Log.Lost = host.Uevent{Overflow: true}, host.LogLine{Overflow: true}
	k.ctx, k.Stop = context.WithCancel(context.Background())
	return k
}

// Lacks reports whether a program or a part of the kernel is missing.
func (k *Kernel) Lacks(what string) bool { return slices.Contains(k.Without, what) }

// Logf writes a line of the kernel log.
func (k *Kernel) Logf(priority int, format string, args ...any) {
	k.Log.Send(host.LogLine{At: k.Clock.Now(), Priority: priority, Text: fmt.Sprintf(format, args...)})
}

func (k *Kernel) Uevent(action, subsystem, path, name string, env map[string]string) {
	all := map[string]string{"ACTION": action, "SUBSYSTEM": subsystem, "DEVPATH": strings.TrimPrefix(path, "sys"), "SEQNUM": fmt.Sprint(k.NextSeq())}
	for key, v := range env {
		all[key] = v
	}
	if name != "" {
		all["DEVNAME"] = name
	}
	k.Uevents.Send(host.Uevent{Action: action, Subsystem: subsystem, DevPath: all["DEVPATH"], DevName: name, Env: all})
}

func (k *Kernel) NextSeq() uint64 {
	k.seq++
	return k.seq
}

// Pause waits on the machine's clock. It returns false if the machine is closed first.
func (k *Kernel) Pause(d time.Duration) bool {
	select {
	case <-k.Clock.After(d):
		return true
	case <-k.ctx.Done():
		return false
	}
}

func (k *Kernel) NextBoot() {
	k.boots++
	k.Tree.Put("proc/sys/kernel/random/boot_id", &sysfs.Node{Text: fmt.Sprintf("5cd0e2a6-0f1e-4f0b-8a52-%012x\n", k.boots)})
}

// Priorities of log lines (include/linux/kern_levels.h).
const (
	LevelAlert = 1
	LevelErr   = 3
	LevelWarn  = 4
	LevelInfo  = 6
)

// Errors of system calls.
var (
	ErrIO      = fmt.Errorf("%w: input/output error", host.ErrIO)
	ErrInvalid = errors.New("invalid argument")
	ErrNoSpace = errors.New("no space left on device")
)
