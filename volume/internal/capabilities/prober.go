package capabilities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// Prober knows the tools and privileges of the daemon.
type Prober struct {
	*env.Env

	tools tools
	lvm   lvmSupport
}

// lvmSupport remembers whether LVM works here.
type lvmSupport struct {
	mu      sync.Mutex
	at      time.Time     // when "lvm version" last ended
	lacks   error         // nil: LVM works
	looking chan struct{} // closed when the present run ends; nil: none
	failed  int           // runs in a row that ended with an error of the program; only the one that looks has it
}

// brokenAfter is how many runs in a row have to end with an error before LVM counts as one that does not work here.
const brokenAfter = 3

// Capabilities returns what this machine can do beyond the basics.
func (e *Prober) Capabilities() drivebay.VolumeCapabilities {
	err := e.LacksLVM()
	return drivebay.VolumeCapabilities{Snapshots: err == nil, Unknown: errors.Is(err, drivebay.ErrUnavailable)}
}

// LacksLVM returns why the daemon cannot use LVM on this machine, nil if it can; ErrUnavailable if that is not known. Only an LVM that works
// is remembered for good: device-mapper can be loaded, and LVM be installed. While one call runs "lvm version", the others use what is known.
func (e *Prober) LacksLVM() error {
	if e.LVM == nil {
		return errNoLVM
	}
	s := &e.lvm
	s.mu.Lock()
	now := e.Machine.Now()
	switch over := s.looking; {
	case over != nil:
		first := s.at.IsZero()
		s.mu.Unlock()
		if first {
			<-over
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lacks
	case !s.at.IsZero() && (s.lacks == nil || now.Sub(s.at).Abs() < lackAgain):
		defer s.mu.Unlock()
		return s.lacks
	}
	over := make(chan struct{})
	s.looking = over
	s.mu.Unlock()
	lacks := fmt.Errorf("%w: whether this machine has LVM is not known yet", drivebay.ErrUnavailable)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lacks, s.at, s.looking = lacks, e.Machine.Now(), nil
		close(over)
	}()
	lacks = e.lookForLVM()
	return lacks
}

var errNoLVM = fmt.Errorf("%w: this machine has no LVM", drivebay.ErrNoSupport)

// lookForLVM runs "lvm version". Without device-mapper in the kernel, it succeeds, but names no driver (seen with
// 2.03.16). A machine with device-mapper counts as having thin pools: only making one would prove it. An "lvm version" that
// stalls, is killed or fails once does not prove that there is no LVM; one that fails again and again does.
func (e *Prober) lookForLVM() error {
	ctx, cancel := context.WithTimeout(e.Ctx, 10*time.Second)
	defer cancel()
	out, err := e.Machine.Run(ctx, "lvm", "version")
	if exit, ended := errors.AsType[*host.ExitError](err); ended && exit.Code > 0 {
		e.lvm.failed++
	} else {
		e.lvm.failed = 0
	}
	switch {
	case e.lvm.failed >= brokenAfter:
		return fmt.Errorf("%w: LVM does not work on this machine: %w", drivebay.ErrNoSupport, err)
	case errors.Is(err, fs.ErrNotExist), err == nil && !strings.Contains(string(out), "Driver version:"):
		return errNoLVM
	case err != nil:
		return fmt.Errorf("%w: whether this machine has LVM is not known: %w; retry later", drivebay.ErrUnavailable, err)
	}
	return nil
}
