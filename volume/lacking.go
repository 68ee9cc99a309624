package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// What volumes need beyond their drives: a program for each filesystem that classes ask
// for, and the privileges of a daemon that opens and mounts block devices.

const (
	lackTime  = 5 * time.Second
	lackAgain = 10 * time.Second // a missing program is looked for so often, when asked
)

// tools remembers which programs are missing.
type tools struct {
	mu      sync.Mutex
	known   bool
	at      time.Time
	missing []string // filesystems whose program is missing
}

// fsTypes are the filesystems that a class may ask for.
func (e *Engine) fsTypes() []string {
	if len(e.opt.FSTypes) == 0 {
		return drivebay.FSTypes
	}
	return e.opt.FSTypes
}

// Lacking is what keeps all volumes, or those of one filesystem, from being made or mounted
// on this machine, and what to do about it. A machine without LVM or cryptsetup lacks
// nothing: it does not offer what needs them.
func (e *Engine) Lacking() []string {
	var out []string
	if why := e.unprivileged(); why != "" {
		out = append(out, why)
	}
	for _, kind := range e.missingTools() {
		out = append(out, fmt.Sprintf("mkfs.%s is not installed: install it, or leave %s out of volumes.filesystems", kind, kind))
	}
	return out
}

// canFormat says whether a filesystem can be made here; none is asked for: "".
func (e *Engine) canFormat(kind string) error {
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

// missingTools are the filesystems that cannot be made. Only a program that is there is
// remembered for good: what is missing can be installed.
func (e *Engine) missingTools() []string {
	t := &e.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	now := e.machine.Now()
	if t.known && (len(t.missing) == 0 || now.Sub(t.at) < lackAgain) {
		return t.missing
	}
	ctx, cancel := context.WithTimeout(e.ctx, lackTime)
	defer cancel()
	ask := e.fsTypes()
	if t.known {
		ask = t.missing
	}
	t.known, t.at, t.missing = true, now, nil
	for _, kind := range ask {
		_, err := e.machine.Run(ctx, "mkfs."+kind, "-V")
		if errors.Is(err, fs.ErrNotExist) {
			t.missing = append(t.missing, kind)
		}
	}
	return t.missing
}

// capAdmin is the bit of CAP_SYS_ADMIN (include/uapi/linux/capability.h): mounts,
// partitions and device-mapper need it.
const capAdmin = 21

// unprivileged says what the kernel does not let the daemon do; "" where nothing is known of
// it. In a user namespace the capabilities are those of the namespace: no block device is
// mounted with them (user_namespaces(7)).
func (e *Engine) unprivileged() string {
	if text, err := e.machine.ReadFile("proc/self/uid_map"); err == nil {
		if f := strings.Fields(string(text)); len(f) >= 3 && slices.Compare(f[:3], []string{"0", "0", "4294967295"}) != 0 {
			return "the daemon is in a user namespace, where no block device can be mounted: run it outside, as root"
		}
	}
	if text, err := e.machine.ReadFile("proc/self/status"); err == nil {
		if has, ok := effective(string(text)); ok {
			if has&(1<<capAdmin) == 0 {
				return "the daemon lacks CAP_SYS_ADMIN, and can mount nothing: run it as root, in a container privileged"
			}
		}
	}
	online, denied := 0, 0
	for _, d := range e.drives.Snapshot().Drives {
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

// effective are the effective capabilities in /proc/PID/status (proc(5)).
func effective(status string) (uint64, bool) {
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return n, err == nil
		}
	}
	return 0, false
}
