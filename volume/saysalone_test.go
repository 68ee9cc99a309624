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

// TestSaysAloneAfterBothWent is the same where both drives were pulled while the mirror was active, and one was put back: the kernel still has
// the mirror, over drives that are gone, and the activation removes that first.
func TestSaysAloneAfterBothWent(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{false, true} {
		onSplit(t, func(x *split) {
			x.inject(x.old.ID, "vanish")
			x.pull(x.current)
			if !staged {
				x.must(x.unstage(x.v))
			}
			x.putBack(x.current)
			if staged {
				x.heal(x.v)
			}
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
}
