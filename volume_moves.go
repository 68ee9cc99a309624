package drivebay

import "fmt"

// CSIStatus is how far a volume is on the way that the CSI specification draws
// for it. It is stored, and moves only through CSIState.Next.
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

// csiAtRest stands in the table for where the mounts say that the volume is.
// They are asked, not remembered: a pod may come and go while a volume is FAILED.
const csiAtRest CSIStatus = 0xff

// underWay says whether something is being done to the volume that has to be
// brought to its end.
func (s CSIStatus) underWay() bool {
	return s == CSICreating || s == CSIResizing || s == CSIRemoving
}

// CSIEvent is what moves a volume.
type CSIEvent uint8

const (
	CSICreate CSIEvent = iota + 1 // somebody wants it
	CSIFound                      // seen on its drive, not in the store
	CSIDone                       // what was under way is done
	CSIStage
	CSIUnstage
	CSIPublish   // at its first target
	CSIUnpublish // from its last target
	CSIResize
	CSIRemove
	CSIFail
	CSIClear // what failed has succeeded since, or an operator lets it be
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

// csiFailedMoves are the ways out of FAILED, by the state before. What was
// under way is begun again; a volume half made or half wiped cannot be declared
// sound; and nobody is kept from letting go of one.
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

// CSIState is a status with what it does not tell by itself.
type CSIState struct {
	Status CSIStatus
	Before CSIStatus // of a FAILED one: the state in which it failed
	Rest   CSIStatus // CREATED, VOLUME_READY or PUBLISHED, as the mounts have it
}

// Next is the only way from one CSI status to another.
func (s CSIState) Next(e CSIEvent) (CSIStatus, error) {
	moves := csiMoves[s.Status]
	if s.Status == CSIFailed {
		moves = csiFailedMoves[s.Before]
	}
	to, ok := moves[e]
	switch {
	case !ok && s.Status == CSIFailed:
		return s.Status, fmt.Errorf("volume %v in %v: %w: no move on %q", s.Status, s.Before, ErrInvalid, e)
	case !ok:
		return s.Status, fmt.Errorf("volume %v: %w: no move on %q", s.Status, ErrInvalid, e)
	case e == CSIRemove && s.Rest != CSICreated:
		return s.Status, fmt.Errorf("volume %v: %w: it is still mounted", s.Rest, ErrBusy)
	case to == csiAtRest:
		return s.Rest, nil
	}
	return to, nil
}

// VolumeUsage is where a volume stands when its drive has to leave. It is
// stored, and moves only through VolumeUsage.Next.
type VolumeUsage uint8

const (
	VolumeUsageUnknown VolumeUsage = iota
	VolumeInUse
	VolumeReleasing // its drive is leaving, and the volume has to leave it
	VolumeReleased  // whoever used it has let go: nothing of it is needed on the drive
	VolumeUsageFailed
)

// VolumeUsageEvent is what moves a volume's usage.
type VolumeUsageEvent uint8

const (
	VolumeUsageMade    VolumeUsageEvent = iota + 1
	VolumeUsageRelease                  // its drive is asked to leave
	VolumeUsageMoved                    // its data is on another drive now
	VolumeUsageLetGo                    // nobody needs what is on the drive
	VolumeUsageFail                     // neither could be done
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

// Next is the only way from one usage to another.
func (u VolumeUsage) Next(e VolumeUsageEvent) (VolumeUsage, error) {
	if to, ok := volumeUsageMoves[u][e]; ok {
		return to, nil
	}
	return u, fmt.Errorf("volume usage %v: %w: no move on %q", u, ErrInvalid, e)
}

func errCause(what, id string) error {
	return fmt.Errorf("%s %s: %w: a failure needs its cause", what, id, ErrInvalid)
}
