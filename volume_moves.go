package drivebay

import "fmt"

// CSIStatus is the state of a volume in the life cycle of the CSI specification. It is
// stored, and changes only by CSIState.Next.
type CSIStatus uint8

const (
	CSIUnknown CSIStatus = iota
	CSICreating
	CSICreated     // exists, mounted nowhere
	CSIVolumeReady // staged
	CSIPublished
	CSIResizing
	CSIResized // the device is grown, its filesystem is not yet
	CSIRemoving
	CSIRemoved
	CSIFailed
)

// csiAtRest stands in the table for the status that follows from the publications. It
// is computed, not stored: a pod may come and go while a volume is FAILED.
const csiAtRest CSIStatus = 0xff

// underWay reports whether the status means work that has to be completed.
func (s CSIStatus) underWay() bool {
	return s == CSICreating || s == CSIResizing || s == CSIRemoving
}

// CSIEvent is an event that changes the CSIStatus of a volume.
type CSIEvent uint8

const (
	CSICreate CSIEvent = iota + 1 // its creation is requested
	CSIFound                      // found on its drive, without a record
	CSIDone                       // the work under way is done
	CSIStage
	CSIUnstage
	CSIPublish   // at its first target
	CSIUnpublish // from its last target
	CSIResize
	CSIRemove
	CSIFail
	CSIClear // what failed has succeeded since, or an operator cleared the failure
)

type csiMoveTable map[CSIStatus]map[CSIEvent]CSIStatus

var csiMoves = csiMoveTable{
	CSIUnknown:     {CSICreate: CSICreating, CSIFound: csiAtRest},
	CSICreating:    {CSIDone: CSICreated, CSIRemove: CSIRemoving, CSIFail: CSIFailed},
	CSICreated:     {CSIStage: CSIVolumeReady, CSIResize: CSIResizing, CSIRemove: CSIRemoving, CSIFail: CSIFailed},
	CSIVolumeReady: {CSIPublish: CSIPublished, CSIUnstage: CSICreated, CSIResize: CSIResizing, CSIFail: CSIFailed},
	CSIPublished:   {CSIUnpublish: CSIVolumeReady, CSIResize: CSIResizing, CSIFail: CSIFailed},
	CSIResizing:    {CSIDone: CSIResized, CSIUnstage: CSIResizing, CSIUnpublish: CSIResizing, CSIFail: CSIFailed},
	CSIResized: {CSIDone: csiAtRest, CSIStage: CSIResized, CSIUnstage: CSIResized, CSIPublish: CSIResized, CSIUnpublish: CSIResized,
		CSIResize: CSIResizing, CSIRemove: CSIRemoving, CSIFail: CSIFailed},
	CSIRemoving: {CSIDone: CSIRemoved, CSIFail: CSIFailed},
	CSIRemoved:  {CSICreate: CSICreating},
}

// csiFailedMoves holds the ways out of FAILED, by the state before. The work that failed
// can be started again. A volume that is half made or half wiped cannot be cleared.
// Unstage, unpublish and remove are always allowed.
var csiFailedMoves = csiMoveTable{
	CSIUnknown:     {CSIUnstage: CSIFailed, CSIUnpublish: CSIFailed, CSIRemove: CSIRemoving},
	CSICreating:    {CSIUnstage: CSIFailed, CSIUnpublish: CSIFailed, CSIRemove: CSIRemoving, CSICreate: CSICreating},
	CSICreated:     csiFailedInUse,
	CSIVolumeReady: csiFailedInUse,
	CSIPublished:   csiFailedInUse,
	CSIResizing:    csiFailedToGrow,
	CSIResized:     csiFailedToGrow,
	CSIRemoving:    {CSIUnstage: CSIFailed, CSIUnpublish: CSIFailed, CSIRemove: CSIRemoving},
}

var (
	csiFailedInUse = map[CSIEvent]CSIStatus{CSIStage: CSIFailed, CSIUnstage: CSIFailed, CSIPublish: CSIFailed, CSIUnpublish: CSIFailed,
		CSIFail: CSIFailed, CSIClear: csiAtRest, CSIResize: CSIResizing, CSIRemove: CSIRemoving}
	csiFailedToGrow = map[CSIEvent]CSIStatus{CSIStage: CSIFailed, CSIUnstage: CSIFailed, CSIPublish: CSIFailed, CSIUnpublish: CSIFailed,
		CSIClear: csiAtRest, CSIResize: CSIResizing, CSIRemove: CSIRemoving}
)

// CSIState is a status with what Next needs besides it.
type CSIState struct {
	Status CSIStatus
	Before CSIStatus // of a FAILED volume: the state in which it failed
	Rest   CSIStatus // CREATED, VOLUME_READY or PUBLISHED, by the publications
}

// Next returns the CSI status after an event. It changes in no other way.
func (s CSIState) Next(e CSIEvent) (CSIStatus, error) {
	moves := csiMoves[s.Status]
	if s.Status == CSIFailed {
		moves = csiFailedMoves[s.Before]
	}
	to, ok := moves[e]
	switch {
	case !ok && s.Status == CSIFailed:
		return s.Status, fmt.Errorf("volume %v in %v: %w: no transition for %q", s.Status, s.Before, ErrInvalid, e)
	case !ok:
		return s.Status, fmt.Errorf("volume %v: %w: no transition for %q", s.Status, ErrInvalid, e)
	case e == CSIRemove && s.Rest != CSICreated:
		return s.Status, fmt.Errorf("volume %v: %w: it is still mounted", s.Rest, ErrBusy)
	case to == csiAtRest:
		return s.Rest, nil
	}
	return to, nil
}

// VolumeUsage is the state of a volume when its drive has to leave. It is stored, and
// changes only by VolumeUsage.Next.
type VolumeUsage uint8

const (
	VolumeUsageUnknown VolumeUsage = iota
	VolumeInUse
	VolumeReleasing // its drive has to leave, and the volume has to leave the drive
	VolumeReleased  // an operator released it: its data on the drive is not needed
	VolumeUsageFailed
)

// VolumeUsageEvent is an event that changes the usage of a volume.
type VolumeUsageEvent uint8

const (
	VolumeUsageMade    VolumeUsageEvent = iota + 1
	VolumeUsageRelease                  // its drive has to leave
	VolumeUsageMoved                    // its data is on another drive now
	VolumeUsageLetGo                    // an operator releases it: its data on the drive is not needed
	VolumeUsageFail                     // it could be neither moved nor released
	VolumeUsageRetry                    // an operator asks for another try
	VolumeUsageKeep                     // the drive stays after all
)

var volumeUsageMoves = map[VolumeUsage]map[VolumeUsageEvent]VolumeUsage{
	VolumeUsageUnknown: {VolumeUsageMade: VolumeInUse},
	VolumeInUse:        {VolumeUsageRelease: VolumeReleasing},
	VolumeReleasing:    {VolumeUsageMoved: VolumeInUse, VolumeUsageLetGo: VolumeReleased, VolumeUsageFail: VolumeUsageFailed, VolumeUsageKeep: VolumeInUse},
	VolumeReleased:     {VolumeUsageKeep: VolumeInUse},
	VolumeUsageFailed:  {VolumeUsageRetry: VolumeReleasing, VolumeUsageKeep: VolumeInUse},
}

// Next returns the usage after an event. It changes in no other way.
func (u VolumeUsage) Next(e VolumeUsageEvent) (VolumeUsage, error) {
	if to, ok := volumeUsageMoves[u][e]; ok {
		return to, nil
	}
	return u, fmt.Errorf("volume usage %v: %w: no transition for %q", u, ErrInvalid, e)
}

func errCause(what, id string) error {
	return fmt.Errorf("%s %s: %w: a failure needs its cause", what, id, ErrInvalid)
}
