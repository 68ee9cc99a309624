package capabilities

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// Prober knows the tools and privileges of the daemon.
type Prober struct {
	*env.Env

	capabilities      drivebay.VolumeCapabilities
	capabilitiesKnown bool       // the capabilities are known
	capabilitiesMu    sync.Mutex // held while the capabilities are determined
	tools             tools
}

// Capabilities returns what this machine can do beyond the basics. It runs "lvm version" once,
// and again if that did not answer in time. Without device-mapper in the kernel, "lvm version"
// succeeds, but names no driver (seen with 2.03.16). A machine with device-mapper counts as
// having thin pools: only making one would prove it.
func (e *Prober) Capabilities() drivebay.VolumeCapabilities {
	e.capabilitiesMu.Lock()
	defer e.capabilitiesMu.Unlock()
	if e.LVM == nil || e.capabilitiesKnown {
		return e.capabilities
	}
	ctx, cancel := context.WithTimeout(e.Ctx, 10*time.Second)
	defer cancel()
	out, err := e.Machine.Run(ctx, "lvm", "version")
	e.capabilitiesKnown = ctx.Err() == nil
	e.capabilities.Snapshots = err == nil && strings.Contains(string(out), "Driver version:")
	return e.capabilities
}

// HasLVM reports whether the daemon can use LVM on this machine.
func (e *Prober) HasLVM() bool { return e.Capabilities().Snapshots }
