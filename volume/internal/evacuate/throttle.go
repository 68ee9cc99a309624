package evacuate

import (
	"errors"
	"fmt"
	"io/fs"
)

// throttleFile holds the percentage of the time in which the kernel may copy below
// volumes that move, for the whole machine (drivers/md/dm-raid1.c; the file exists once
// the module is loaded). With 3 of 100 a move of 200 MiB took 32 s instead of 2 s (Linux
// 6.1). md slows its copies of mirror legs itself, in favor of the mirror's users
// (/proc/sys/dev/raid/speed_limit_min).
const throttleFile = "sys/module/dm_mirror/parameters/raid1_resync_throttle"

func (e *Evacuator) throttle() {
	if e.Opt.Throttle == 0 {
		return
	}
	err := e.Machine.WriteFile(throttleFile, fmt.Append(nil, e.Opt.Throttle))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.Log.Warn("copy limit not set", "op", "move", "err", err)
	}
}
