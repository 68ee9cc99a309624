package drives

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// The fields of the spec.
const (
	fieldClaim          = "claim"
	fieldCordoned       = "cordoned"
	fieldLocate         = "locate"
	fieldRelease        = "release"
	fieldApproveRemoval = "approveRemoval"
	fieldAccept         = "accept"
)

// The states of a request.
const (
	stateApplying = "Applying"
	stateApplied  = "Applied"
	stateRefused  = "Refused"
	stateFailed   = "Failed"
)

// The reasons of a request that was not applied, and of the condition SpecApplied.
const (
	reasonApplied      = "Applied"
	reasonApplying     = "Applying"
	reasonWaiting      = "WaitingForDrive"
	reasonInterrupted  = "Interrupted"
	reasonNotRequested = "SetBeforeFirstStatus"
	reasonNoBay        = "NoBay"
	reasonNoSupport    = "NotSupported"
	reasonBusy         = "Busy"
	reasonRefused      = "Refused"
	reasonInvalid      = "InvalidState"
	reasonTimeout      = "Timeout"
	reasonFailed       = "Failed"
)

// A request is one field of the spec as the node acts on it.
type request struct {
	field, value string
}

// requests returns the fields that are set, in the order in which they are applied: a drive is cordoned before it is
// claimed, and released before its removal is approved.
func requests(s *v1alpha1.DriveSpec) (out []request) {
	for _, f := range []struct {
		name  string
		value *bool
	}{{fieldCordoned, s.Cordoned}, {fieldClaim, s.Claim}, {fieldLocate, s.Locate}, {fieldRelease, s.Release}} {
		if f.value != nil {
			out = append(out, request{f.name, strconv.FormatBool(*f.value)})
		}
	}
	for _, f := range []request{{fieldApproveRemoval, s.ApproveRemoval}, {fieldAccept, s.Accept}} {
		if f.value != "" {
			out = append(out, f)
		}
	}
	return out
}

func (r request) on() bool { return r.value == "true" }

// once reports whether a request must not be repeated: what it did may have been taken back since. The intent is
// in the status before the node acts on it.
func (r request) once() bool {
	return slices.Contains([]string{fieldRelease, fieldApproveRemoval, fieldAccept}, r.field)
}

// satisfied reports whether the drive is as the request wants it.
func (r request) satisfied(d *drivebay.Drive) bool {
	switch r.field {
	case fieldClaim:
		return r.on() == (d.Claim != nil) && (!r.on() || d.Claim.By == drivebay.ClaimedByOperator)
	case fieldCordoned:
		return r.on() == d.Cordoned
	case fieldRelease:
		leaves := slices.Contains([]drivebay.Usage{drivebay.UsageReleasing, drivebay.UsageReleased, drivebay.UsageRemoving, drivebay.UsageRemoved}, d.Usage)
		return r.on() && leaves || !r.on() && d.Usage == drivebay.UsageInUse
	case fieldApproveRemoval:
		return d.Usage == drivebay.UsageRemoving || d.Usage == drivebay.UsageRemoved
	case fieldAccept:
		return d.Usage == drivebay.UsageInUse
	}
	return false // the light of a bay is switched, and read back, by each request
}

// unread reports whether a request has to wait until the drive was read for the first time.
func (r request) unread(d *drivebay.Drive) bool {
	return r.field == fieldClaim && r.on() && d.Status == drivebay.StatusOnline && d.Content.Kind == drivebay.ContentUnknown && (d.Content.Reason == "" || d.Content.Reason == drivebay.NotRead)
}

// byAPI is the reason that the engine records for a request.
const byAPI = "requested in the Drive object"

// do makes the call of the engine for a request.
func (r request) do(ctx context.Context, e Engine, d *drivebay.Drive) error {
	switch r.field {
	case fieldClaim:
		return e.Claim(ctx, d.ID, r.on())
	case fieldCordoned:
		return e.Cordon(ctx, d.ID, r.on())
	case fieldLocate:
		if d.Slot.Bay == "" {
			return fmt.Errorf("drive %s (%s): %w", d.ID, d.Name, errNoBay)
		}
		return e.Locate(ctx, bayName(d.Slot), r.on())
	case fieldRelease:
		switch {
		case !r.on():
			return e.Operate(ctx, d.ID, drivebay.LeaveCancel, byAPI)
		case d.Usage == drivebay.UsageFailed:
			return e.Operate(ctx, d.ID, drivebay.LeaveRetry, byAPI)
		}
		return e.Operate(ctx, d.ID, drivebay.LeaveRelease, byAPI)
	case fieldApproveRemoval:
		return e.Operate(ctx, d.ID, drivebay.LeaveApprove, byAPI)
	case fieldAccept:
		return e.Operate(ctx, d.ID, drivebay.LeaveAccept, byAPI)
	}
	return fmt.Errorf("field %s: %w", r.field, drivebay.ErrNoSupport)
}

var errNoBay = errors.New("the bay of the drive is not known: the light cannot be switched")

// bayName names a bay so that no bay of another enclosure is meant.
func bayName(s drivebay.Slot) string {
	if s.Enclosure == "" {
		return s.Bay
	}
	return s.Enclosure + "/" + s.Bay
}

// result returns what is recorded about a request after its call.
func (r request) result(err error) v1alpha1.DriveRequest {
	out := v1alpha1.DriveRequest{Field: r.field, Value: r.value, State: stateApplied}
	if err == nil {
		return out
	}
	out.State, out.Message = stateRefused, clip(err.Error(), maxCause)
	for _, e := range []struct {
		is     error
		reason string
	}{{errNoBay, reasonNoBay}, {drivebay.ErrNoSupport, reasonNoSupport}, {drivebay.ErrBusy, reasonBusy}, {drivebay.ErrPending, reasonBusy},
		{drivebay.ErrRefused, reasonRefused}, {drivebay.ErrInvalid, reasonInvalid}, {drivebay.ErrNotFound, reasonInvalid}} {
		if errors.Is(err, e.is) {
			out.Reason = e.reason
			return out
		}
	}
	out.State, out.Reason = stateFailed, reasonFailed
	if errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		out.Reason = reasonTimeout
	}
	return out
}

// interrupted is the result of a request whose call this daemon did not make: the one before it ended meanwhile.
func (r request) interrupted(d *drivebay.Drive) v1alpha1.DriveRequest {
	out := v1alpha1.DriveRequest{Field: r.field, Value: r.value, State: stateApplied}
	if !r.satisfied(d) {
		out.State, out.Reason = stateFailed, reasonInterrupted
		out.Message = fmt.Sprintf("the daemon ended before the result was known; the usage of the drive is %v: remove the field and set it again to repeat the request", d.Usage)
	}
	return out
}

// A progress is the request on which this daemon works now.
type progress struct {
	request request
	running bool                   // its call is under way
	done    *v1alpha1.DriveRequest // the result of the call; nil: not yet
}

// A plan is what is to be done about the spec of a drive.
type plan struct {
	requests []v1alpha1.DriveRequest // to be recorded
	call     *request                // to be made; nil: none
	first    bool                    // the requests have to be recorded before the call is made
	waits    string                  // what the rest of the spec waits for; "": nothing
}

// decide compares the spec of an object with the requests that were recorded in its status; at is nil if this daemon works
// on no request of the drive.
func decide(o *v1alpha1.Drive, d *drivebay.Drive, at *progress) plan {
	var p plan
	lost := recordLost(o, d)
	for _, r := range requests(&o.Spec) {
		was, mine := recorded(o.Status.Requests, r.field), at != nil && at.request == r
		if was != nil && (was.Value != r.value || lost && !r.once() && !mine) {
			was = nil
		}
		switch {
		case mine && at.done != nil:
			p.requests = append(p.requests, *at.done)
		case mine && at.running:
			p.requests = append(p.requests, applying(r))
		case was != nil && was.State != stateApplying:
			p.requests = append(p.requests, *was)
		case was != nil && mine: // the intent is recorded
			p.call = &r
			p.requests = append(p.requests, *was)
		case was != nil && r.once():
			p.requests = append(p.requests, r.interrupted(d))
		case r.once() && o.Status.Node == "":
			p.requests = append(p.requests, v1alpha1.DriveRequest{Field: r.field, Value: r.value, State: stateRefused, Reason: reasonNotRequested,
				Message: "the field was set before the node wrote the first status, as a restored backup has it: remove the field and set it again"})
		case r.satisfied(d):
			p.requests = append(p.requests, r.result(nil))
		case r.unread(d):
			p.waits = r.field + ": the drive was not read yet"
		case p.call != nil || at != nil && !mine:
			p.waits = r.field + ": another field is applied first"
		default:
			p.call, p.first = &r, r.once()
			p.requests = append(p.requests, applying(r))
		}
	}
	slices.SortFunc(p.requests, func(a, b v1alpha1.DriveRequest) int { return strings.Compare(a.Field, b.Field) })
	return p
}

// recordLost reports whether the node has lost the record of a drive since it wrote the status: it was reinstalled. What
// people want of the drive, and what can be repeated, is then applied again. The two times are of one clock.
func recordLost(o *v1alpha1.Drive, d *drivebay.Drive) bool {
	was := o.Status.FirstSeen.Time
	return !was.IsZero() && second(d.FirstSeen).Time.After(was)
}

func applying(r request) v1alpha1.DriveRequest {
	return v1alpha1.DriveRequest{Field: r.field, Value: r.value, State: stateApplying}
}

func recorded(all []v1alpha1.DriveRequest, field string) *v1alpha1.DriveRequest {
	if i := slices.IndexFunc(all, func(r v1alpha1.DriveRequest) bool { return r.Field == field }); i >= 0 {
		return &all[i]
	}
	return nil
}

// condition says whether the spec is applied. settled is true if the node has acted on the whole spec.
func (p plan) condition() (status metav1.ConditionStatus, reason, message string, settled bool) {
	status, reason, settled = metav1.ConditionTrue, reasonApplied, p.waits == ""
	var messages []string
	for _, r := range p.requests {
		switch r.State {
		case stateApplying:
			settled = false
		case stateRefused, stateFailed:
			if len(messages) == 0 {
				status, reason = metav1.ConditionFalse, r.Reason
			}
			messages = append(messages, r.Field+": "+r.Message)
		}
	}
	switch {
	case len(messages) > 0:
	case p.waits != "" && p.call == nil:
		return metav1.ConditionUnknown, reasonWaiting, clip(p.waits, maxCause), settled
	case !settled:
		return metav1.ConditionUnknown, reasonApplying, "", settled
	}
	return status, reason, clip(strings.Join(messages, "; "), maxCause), settled
}
