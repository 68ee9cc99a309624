package volume

import (
	"context"
	"time"

	"github.com/drivebay/drivebay"
)

// Powers says what this machine can do beyond the plain.
func (e *Engine) Powers() drivebay.VolumePowers {
	e.lvmMay.Do(func() {
		if e.lvm == nil || !e.hasMapper() {
			return
		}
		ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
		defer cancel()
		_, err := e.machine.Run(ctx, "lvm", "version")
		e.powers.Snapshots = err == nil
	})
	return e.powers
}

// hasMapper looks for device-mapper: its control device is registered when the
// driver is there (drivers/md/dm-ioctl.c). The driver of thin pools is loaded by
// the first who needs it: that it can be, nobody tells without trying.
func (e *Engine) hasMapper() bool {
	for _, name := range []string{"sys/class/misc/device-mapper/dev", "sys/module/dm_mod/version"} {
		if _, err := e.machine.ReadFile(name); err == nil {
			return true
		}
	}
	return false
}

func (e *Engine) hasLVM() bool { return e.Powers().Snapshots }
