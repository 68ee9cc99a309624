package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestKilledBeforeRecord: a daemon that is killed between a mount and its record leaves a
// record that knows nothing of the mount. Unpublish and unstage find it all the same, at once
// and after the new daemon has held its records against the mounts.
func TestKilledBeforeRecord(t *testing.T) {
	t.Parallel()
	n := 0
	for _, backing := range allBackings {
		for _, block := range []bool{false, true} {
			for _, encrypted := range []bool{false, true} {
				if encrypted && backing != drivebay.BackingPartition && backing != drivebay.BackingThin {
					continue
				}
				for _, killed := range []string{"stage", "publish", "both"} {
					for _, settled := range []bool{false, true} {
						if n++; n%everyNth != 0 {
							continue
						}
						t.Run(fmt.Sprint(backing, " block ", block, " encrypted ", encrypted, " in ", killed, " settled ", settled), func(t *testing.T) {
							onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
								s.killedBeforeRecord(backing, block, encrypted, killed, settled)
							})
						})
					}
				}
			}
		}
	}
}

func (s *stand) killedBeforeRecord(backing drivebay.Backing, block, encrypted bool, killed string, settled bool) {
	r := partitionOf(1 << 30)
	r.Block, r.Class.Backing = block, backing
	if encrypted {
		r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
	}
	v := s.make("kept", r)
	record := func() drivebay.VolumeRecord {
		all, err := s.st.Volumes()
		s.must(err)
		return all[v.ID]
	}
	before := record()
	s.must(s.stage(v, with(rightKey)))
	if killed == "publish" {
		before = record()
	}
	if killed != "stage" {
		s.must(s.publish(v, "pod"))
	}
	s.stop()
	s.stop = nil
	old := record()
	old.Volume.CSIStatus, old.Volume.Publications = before.Volume.CSIStatus, before.Volume.Publications
	s.must(s.st.PutVolume(old))
	s.begin()
	if settled {
		time.Sleep(10 * time.Second)
	}
	again := func(f func() error) {
		s.Helper()
		err := f()
		for range 20 { // what kubelet does
			if err == nil {
				return
			}
			time.Sleep(time.Second)
			err = f()
		}
		s.Fatal(err)
	}
	if killed != "stage" {
		again(func() error { return s.unpublish(v, "pod") })
	}
	again(func() error { return s.unstage(v) })
	time.Sleep(5 * time.Second)
	all, err := s.sim.Mounts(s.Context())
	s.must(err)
	for _, m := range all {
		if strings.Contains(m.Target, v.ID) {
			s.Errorf("left mounted: %+v", m)
		}
	}
	if _, there := s.plain(v); there {
		s.Error("left unlocked")
	}
	if is := s.of(v); is.CSIStatus != drivebay.CSICreated || len(is.Publications) > 0 || is.Condition.Abnormal() {
		s.Errorf("%v, published %v, %s", is.CSIStatus, is.Publications, reasons(is.Condition))
	}
	s.must(s.e.DeleteVolume(s.Context(), v.ID))
}
