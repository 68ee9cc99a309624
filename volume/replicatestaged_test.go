package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestReplicationStagedAgain: a kubelet stages a volume again after the daemon has been restarted, and rotates the key of one that is in use. DRBD
// is then between the device in plain and the logical volume; the device stays open.
func TestReplicationStagedAgain(t *testing.T) {
	t.Parallel()
	for name, r := range encryptedRequests() {
		if r.Class.Backing == drivebay.BackingDrive { // no place for the metadata of DRBD
			continue
		}
		for _, published := range []bool{true, false} {
			t.Run(map[bool]string{true: "published, ", false: "staged, "}[published]+name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					v := s.make("v", r)
					s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
					v = s.of(v).Volume
					s.must(s.stage(v, with(rightKey)))
					dev, _ := s.plain(v)
					if published {
						s.must(s.publish(v, "pod"))
					}
					s.start()
					s.must(s.retried(func() error { return s.stage(v, with(rightKey)) }))
					time.Sleep(20 * time.Minute)
					s.must(s.e.RotateKey(s.Context(), drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(rightKey), New: secrets("another key")}))
					if now, _ := s.plain(v); now != dev {
						s.Errorf("unlocked as %q, was %q", now, dev)
					}
					s.must(s.publish(v, "pod"))
					s.must(s.unpublish(v, "pod"))
					s.must(s.unstage(v))
				})
			})
		}
	}
}
