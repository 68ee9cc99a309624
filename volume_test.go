package drivebay

import (
	"errors"
	"testing"
	"time"
)

var (
	rests     = []CSIStatus{CSICreated, CSIVolumeReady, CSIPublished}
	csiEvents = []CSIEvent{CSICreate, CSIFound, CSIDone, CSIStage, CSIUnstage, CSIPublish, CSIUnpublish, CSIResize, CSIRemove, CSIFail, CSIClear}
)

// at is a volume whose mounts are as rest says.
func at(status, before, rest CSIStatus) Volume {
	v := Volume{ID: "v", CSIStatus: status}
	if rest != CSICreated {
		v.Publications = append(v.Publications, Publication{Path: "/s", Staging: true})
	}
	if rest == CSIPublished {
		v.Publications = append(v.Publications, Publication{Path: "/t"})
	}
	if status == CSIFailed {
		v.Failure = &Failure[CSIStatus]{Before: before, Tries: 1}
	}
	return v
}

// TestCSIMoves walks every status, state before, mount and event.
func TestCSIMoves(t *testing.T) {
	reached := map[CSIStatus]bool{CSIUnknown: true}
	for s := CSIUnknown; s <= CSIFailed; s++ {
		for before := CSIUnknown; before <= CSIFailed; before++ {
			for _, rest := range rests {
				v, leaves := at(s, before, rest), false
				if got := v.State(); got.Rest != rest {
					t.Fatalf("mounts say %v, want %v", got.Rest, rest)
				}
				for _, e := range csiEvents {
					to, err := v.State().Next(e)
					if to > CSIFailed || err != nil && to != s {
						t.Errorf("%v (%v, %v) on %v goes to %v, %v", s, before, rest, e, to, err)
					}
					if err == nil {
						reached[to], leaves = true, leaves || to != s
					}
					if e == CSIRemove && rest != CSICreated && err == nil {
						t.Errorf("%v (%v) is removed while it is %v", s, before, rest)
					}
				}
				// A failure of nothing that can fail is on no record of ours.
				real := s != CSIFailed || before <= CSIRemoving
				mountable := rest == CSICreated || s != CSIFailed || before != CSIRemoving && before != CSIUnknown
				if !leaves && real && mountable {
					t.Errorf("%v (%v, %v) is a sink", s, before, rest)
				}
			}
		}
	}
	for s := CSIUnknown; s <= CSIFailed; s++ {
		if !reached[s] {
			t.Errorf("nothing leads to %v", s)
		}
	}
}

func TestFailedIsNoSinkAndForgetsNothing(t *testing.T) {
	start := time.Unix(1, 0)
	for _, s := range []CSIStatus{CSICreating, CSICreated, CSIVolumeReady, CSIPublished, CSIResizing, CSIResized, CSIRemoving} {
		v, err := at(s, 0, CSICreated).Failed(Failure[CSIStatus]{Cause: "why", Since: start, Retry: RetryTimed})
		if err != nil || v.CSIStatus != CSIFailed || v.Failure.Before != s || v.Failure.Tries != 1 || v.Failure.Cause != "why" {
			t.Fatalf("%v fails: %+v, %v", s, v, err)
		}
		for _, e := range []CSIEvent{CSIUnpublish, CSIUnstage} { // nobody is kept from letting go
			if v, err = v.Moved(e); err != nil || v.CSIStatus != CSIFailed || v.Failure.Before != s {
				t.Errorf("%v on a volume that failed in %v: %+v, %v", e, s, v, err)
			}
		}
		retry := map[CSIStatus]CSIEvent{CSICreating: CSICreate, CSIRemoving: CSIRemove, CSIResizing: CSIResize, CSIResized: CSIResize}[s]
		if retry == 0 { // it failed at rest: the same call again
			if v, err = v.Failed(Failure[CSIStatus]{Cause: "again", Since: start.Add(1)}); err != nil || v.Failure.Tries != 2 || v.Failure.Before != s || v.Failure.Since != start {
				t.Errorf("%v fails twice: %+v, %v", s, v.Failure, err)
			}
			v.Publications = at(0, 0, CSIPublished).Publications
			if v, err = v.Moved(CSIClear); err != nil || v.CSIStatus != CSIPublished || v.Failure != nil {
				t.Errorf("%v clears to %+v, %v", s, v, err)
			}
			continue
		}
		if v, err = v.Moved(retry); err != nil || !v.CSIStatus.underWay() || v.Failure == nil {
			t.Fatalf("%v is tried again: %+v, %v", s, v, err)
		}
		again, err := v.Failed(Failure[CSIStatus]{Cause: "again"})
		if err != nil || again.Failure.Cause != "again" || (s != CSIResized && again.Failure.Tries != 2) {
			t.Errorf("%v fails twice: %+v, %v", s, again.Failure, err)
		}
		if v, err = v.Moved(CSIDone); err != nil || v.Failure != nil {
			t.Errorf("%v succeeds: %+v, %v", s, v, err)
		}
	}
	for _, before := range []CSIStatus{CSIUnknown, CSICreating, CSIRemoving} { // half a volume is not declared sound
		for _, e := range []CSIEvent{CSIClear, CSIStage, CSIPublish, CSIResize} {
			if to, err := (CSIState{Status: CSIFailed, Before: before, Rest: CSICreated}).Next(e); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v on a volume that failed in %v goes to %v", e, before, to)
			}
		}
	}
	if _, err := at(CSICreated, 0, CSICreated).Moved(CSIFail); err == nil {
		t.Error("a volume fails without a cause")
	}
	if _, err := at(CSICreated, 0, CSIPublished).Moved(CSIRemove); !errors.Is(err, ErrBusy) {
		t.Errorf("a mounted volume is removed: %v", err)
	}
}

func TestVolumeUsageMoves(t *testing.T) {
	reached := map[VolumeUsage]bool{VolumeUsageUnknown: true}
	for u := VolumeUsageUnknown; u <= VolumeUsageFailed; u++ {
		leaves := false
		for e := VolumeUsageMade; e <= VolumeUsageKeep; e++ {
			to, err := u.Next(e)
			if want, ok := volumeUsageMoves[u][e]; ok != (err == nil) || (ok && to != want) || (!ok && to != u) {
				t.Errorf("%v on %v goes to %v, %v", u, e, to, err)
			}
			if err == nil {
				reached[to], leaves = true, leaves || to != u
			}
		}
		if !leaves {
			t.Errorf("%v is a sink", u)
		}
	}
	if len(reached) != int(VolumeUsageFailed)+1 {
		t.Errorf("only %v are reached", reached)
	}
	v := Volume{Usage: VolumeReleasing}
	v, err := v.UsageFailed(Failure[VolumeUsage]{Cause: "no room"})
	if err != nil || v.Usage != VolumeUsageFailed || v.UsageFailure.Before != VolumeReleasing {
		t.Fatalf("fails: %+v, %v", v, err)
	}
	v, _ = v.UsageMoved(VolumeUsageRetry)
	if v, err = v.UsageFailed(Failure[VolumeUsage]{Cause: "still none"}); err != nil || v.UsageFailure.Tries != 2 {
		t.Errorf("fails twice: %+v, %v", v.UsageFailure, err)
	}
	if v, err = v.UsageMoved(VolumeUsageKeep); err != nil || v.UsageFailure != nil || v.Usage != VolumeInUse {
		t.Errorf("kept: %+v, %v", v, err)
	}
	if _, err := (Volume{Usage: VolumeReleasing}).UsageMoved(VolumeUsageFail); err == nil {
		t.Error("usage fails without a cause")
	}
}
