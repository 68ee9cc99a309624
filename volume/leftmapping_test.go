package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestLeftMapping: an encrypted volume is unstaged while neither its record nor LVM can be read, after its drive was pulled and put back. The
// call ends well, and locks the volume: else the mapping keeps the logical volume on the drive that went, and it cannot be staged any more.
func TestLeftMapping(t *testing.T) {
	t.Parallel()
	for name, r := range encryptedRequests() {
		for _, unstaged := range []bool{true, false} {
			t.Run(map[bool]string{true: "unstaged, ", false: "left, "}[unstaged]+name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					tools := &illTools{Machine: s.sim}
					s.lvm = tools
					s.start()
					v := s.make("v", r)
					s.must(s.stage(v, with(rightKey)))
					for _, d := range v.Location.Drives {
						s.inject(d, "vanish")
					}
					time.Sleep(10 * time.Second)
					for _, d := range v.Location.Drives {
						s.inject(d, "heal")
					}
					time.Sleep(time.Minute)
					s.stop()
					s.stop, s.st = nil, store.Memory()
					tools.set("fails", 1)
					s.start()
					if unstaged {
						s.must(s.retried(func() error { return s.unstage(v) }))
						if dev, open := s.plain(v); open {
							s.Errorf("%s is left open", dev)
						}
					}
					tools.set("", 0)
					time.Sleep(12 * time.Minute)
					if v.HasFilesystem() && !unstaged { // the mount has the device open
						s.must(s.unstage(v))
					}
					s.must(s.retried(func() error { return s.stage(v, with(rightKey)) }))
					s.must(s.unstage(v))
				})
			})
		}
	}
}
