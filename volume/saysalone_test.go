package volume_test

import "testing"

// TestSaysAlone: a mirror is activated without one of its drives, and takes a write. Then the power fails, the drive is back, and the records
// are lost. The superblock of the leg that served alone says so all the same: the other one is copied to.
func TestSaysAlone(t *testing.T) {
	t.Parallel()
	onSplit(t, func(x *split) {
		x.must(x.unstage(x.v))
		x.pull(x.old)
		x.must(x.stage(x.v))
		x.word(x.v, "second")
		x.stop()
		x.stop = nil
		x.must(x.st.DeleteVolume(x.v.ID))
		x.sim.PowerCut()
		x.putBack(x.old)
		x.start()
		x.serves("second")
	})
}
