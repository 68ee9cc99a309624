package drivebay

import "testing"

// TestVolumeID: the id of a volume is on its drives, so it can never be derived differently.
func TestVolumeID(t *testing.T) {
	if got := VolumeID("pvc-1"); got != "u3q3s7zv6fphgw2of3iu77gskq" {
		t.Errorf("volume: %s", got)
	}
	if got := SnapshotID("pvc-1"); got != "4czzwclwmf3alw6mmrkehkfp3q" {
		t.Errorf("snapshot: %s", got)
	}
}
