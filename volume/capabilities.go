package volume

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Capabilities returns what this machine can do beyond the basics. It runs "lvm version" once,
// and again if that did not answer in time. Without device-mapper in the kernel, "lvm version"
// succeeds, but names no driver (seen with 2.03.16). A machine with device-mapper counts as
// having thin pools: only making one would prove it.
func (e *Engine) Capabilities() drivebay.VolumeCapabilities {
	e.capabilitiesMu.Lock()
	defer e.capabilitiesMu.Unlock()
	if e.lvm == nil || e.capabilitiesKnown {
		return e.capabilities
	}
	ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
	defer cancel()
	out, err := e.machine.Run(ctx, "lvm", "version")
	e.capabilitiesKnown = ctx.Err() == nil
	e.capabilities.Snapshots = err == nil && strings.Contains(string(out), "Driver version:")
	return e.capabilities
}

func (e *Engine) hasLVM() bool { return e.Capabilities().Snapshots }

// Encrypts returns nil if volumes can be encrypted here, else the reason.
func (e *Engine) Encrypts(ctx context.Context) error { return e.canEncrypt(ctx) }
