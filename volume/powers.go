package volume

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Powers says what this machine can do beyond the plain: it is asked once, and
// again where that had no answer in time. Where the kernel has no device-mapper
// "lvm version" ends well, too, but names no driver (seen with 2.03.16). Whether the
// kernel has thin pools nobody tells without making one: whoever has device-mapper
// is believed to.
func (e *Engine) Powers() drivebay.VolumePowers {
	e.asking.Lock()
	defer e.asking.Unlock()
	if e.lvm == nil || e.asked {
		return e.powers
	}
	ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
	defer cancel()
	out, err := e.machine.Run(ctx, "lvm", "version")
	e.asked = ctx.Err() == nil
	e.powers.Snapshots = err == nil && strings.Contains(string(out), "Driver version:")
	return e.powers
}

func (e *Engine) hasLVM() bool { return e.Powers().Snapshots }

// Encrypts is nil where volumes can be encrypted, and else says why not.
func (e *Engine) Encrypts(ctx context.Context) error { return e.canEncrypt(ctx) }
