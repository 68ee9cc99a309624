package volume

import (
	"errors"
	"fmt"
	"io/fs"
)

// throttleFile says how much of the time the kernel may copy below volumes that move,
// in percent, for the whole machine (drivers/md/dm-raid1.c; it is there once the
// module is). With 3 of 100 a move of 200 MiB took 32 s in place of 2 s (Linux 6.1).
// The legs of mirrors md copies as slowly as those want who use them
// (/proc/sys/dev/raid/speed_limit_min).
const throttleFile = "sys/module/dm_mirror/parameters/raid1_resync_throttle"

func (e *Engine) throttle() {
	if e.opt.Throttle == 0 {
		return
	}
	err := e.machine.WriteFile(throttleFile, fmt.Append(nil, e.opt.Throttle))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.log.Warn("copying is not throttled", "op", "move", "err", err)
	}
}
