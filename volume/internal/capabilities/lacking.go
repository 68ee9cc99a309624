package capabilities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// What volumes need beyond their drives: a program for each filesystem that classes use, and the
// privileges to open and mount block devices.

const (
	lackTime  = 5 * time.Second
	lackAgain = 10 * time.Second // how often a missing program is looked for again
)

// tools remembers which programs are installed.
type tools struct {
	mu      sync.Mutex
	at      time.Time       // when the programs were last looked for
	there   map[string]bool // by filesystem, whether its program is installed; only definite answers
	looking chan struct{}   // closed when the present search ends; nil: none
}

// fsTypes returns the filesystems that a class may ask for.
func (e *Prober) fsTypes() []string {
	if len(e.Opt.FSTypes) == 0 {
		return drivebay.FSTypes
	}
	return e.Opt.FSTypes
}

// Lacking returns what keeps all volumes, or those of one filesystem, from being made or mounted on this
// machine, and what to do about it. A machine without LVM or cryptsetup lacks nothing: it does not offer
// what needs them.
func (e *Prober) Lacking() []string {
	var out []string
	if why := e.unprivileged(); why != "" {
		out = append(out, why)
	}
	for _, kind := range e.missingTools() {
		out = append(out, fmt.Sprintf("mkfs.%s is not installed: install it, or leave %s out of volumes.filesystems", kind, kind))
	}
	return out
}

// CanFormat returns an error if a filesystem cannot be made here; "" asks for none.
func (e *Prober) CanFormat(kind string) error {
	switch {
	case kind == "":
		return nil
	case !slices.Contains(e.fsTypes(), kind):
		return fmt.Errorf("filesystem %s: %w: volumes.filesystems of the configuration leaves it out", kind, drivebay.ErrNoSupport)
	case slices.Contains(e.missingTools(), kind):
		return fmt.Errorf("filesystem %s: %w: mkfs.%s is not installed", kind, drivebay.ErrNoSupport, kind)
	}
	return nil
}

// missingTools returns the filesystems that cannot be made. Only a program that is there is remembered for
// good: a missing one can be installed. While one call searches, the others use what is known.
func (e *Prober) missingTools() []string {
	t := &e.tools
	t.mu.Lock()
	now, first := e.Machine.Now(), t.at.IsZero()
	if over := t.looking; over != nil {
		t.mu.Unlock()
		if first {
			<-over
		}
		return e.knownMissing()
	}
	ask := slices.DeleteFunc(slices.Clone(e.fsTypes()), func(kind string) bool { return t.there[kind] })
	if len(ask) == 0 || !first && now.Sub(t.at) < lackAgain {
		t.mu.Unlock()
		return e.knownMissing()
	}
	over := make(chan struct{})
	t.looking = over
	t.mu.Unlock()
	e.lookForTools(ask, now, over)
	return e.knownMissing()
}

// lookForTools runs the programs of these filesystems, and remembers which are there.
func (e *Prober) lookForTools(ask []string, now time.Time, over chan struct{}) {
	t, came := &e.tools, map[string]bool{}
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.there == nil {
			t.there = map[string]bool{}
		}
		maps.Copy(t.there, came)
		t.at, t.looking = now, nil
		close(over)
	}()
	ctx, cancel := context.WithTimeout(e.Ctx, lackTime)
	defer cancel()
	for _, kind := range ask {
		_, err := e.Machine.Run(ctx, "mkfs."+kind, "-V")
		_, ran := errors.AsType[*host.ExitError](err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			came[kind] = false
		case err == nil || ran: // else the program did not answer: the next search runs it again
			came[kind] = true
		}
	}
}

// knownMissing returns the filesystems whose program was looked for and is not installed.
func (e *Prober) knownMissing() []string {
	e.tools.mu.Lock()
	defer e.tools.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.fsTypes()), func(kind string) bool {
		there, known := e.tools.there[kind]
		return there || !known
	})
}

// capAdmin is the bit of CAP_SYS_ADMIN (include/uapi/linux/capability.h): mounts,
// partitions and device-mapper need it.
const capAdmin = 21

// unprivileged returns which privilege the daemon lacks; "" if none is known to be missing. In a user
// namespace the capabilities are those of the namespace: no block device is mounted with them
// (user_namespaces(7)).
func (e *Prober) unprivileged() string {
	if text, err := e.Machine.ReadFile("proc/self/uid_map"); err == nil {
		if f := strings.Fields(string(text)); len(f) >= 3 && slices.Compare(f[:3], []string{"0", "0", "4294967295"}) != 0 {
			return "the daemon is in a user namespace, where no block device can be mounted: run it outside, as root"
		}
	}
	if text, err := e.Machine.ReadFile("proc/self/status"); err == nil {
		if has, ok := effective(string(text)); ok {
			if has&(1<<capAdmin) == 0 {
				return "the daemon lacks CAP_SYS_ADMIN, and can mount nothing: run it as root, in a container privileged"
			}
		}
	}
	online, denied := 0, 0
	for _, d := range e.Drives.Snapshot().Drives {
		if d.Status == drivebay.StatusOnline && d.Protocol != drivebay.ProtocolNone {
			online++
			if d.Denied {
				denied++
			}
		}
	}
	if online > 0 && denied == online {
		return "the daemon may open no drive: run it as root, in a container privileged and with the devices of the machine"
	}
	return ""
}

// effective returns the effective capabilities in /proc/PID/status (proc(5)).
func effective(status string) (uint64, bool) {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return n, err == nil
		}
	}
	return 0, false
}
