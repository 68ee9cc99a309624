package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

const (
	callTime = 20 * time.Second // of a request to the API server
	// answerTime is how long a command waits for the answer of a node, which takes a second.
	answerTime = 30 * time.Second
	askTime    = 300 * time.Millisecond // between two looks at the answer
	owner      = "kubectl-drivebay"
)

// wish writes a field of the spec of a Drive and waits for the answer of the node. A field that has the value already is removed
// first: a node acts on a field when it changes.
func (c *Cluster) wish(ctx context.Context, drive, field string, value any) error {
	o, err := c.object(ctx, drive)
	if err != nil {
		return err
	}
	if why := c.downOf(o.Status.Node); why != "" {
		return fmt.Errorf("drive %s: %w: %s", drive, drivebay.ErrUnavailable, why)
	}
	text := fmt.Sprint(value)
	if was, set := specField(o, field); set && was == text {
		if o, err = c.patch(ctx, o, field, nil); err == nil {
			err = c.answer(ctx, o, field, "")
		}
		if err != nil {
			return err
		}
	}
	if o, err = c.patch(ctx, o, field, value); err != nil {
		return err
	}
	return c.answer(ctx, o, field, text)
}

// specField returns the value of a field of a spec.
func specField(o *v1alpha1.Drive, field string) (value string, set bool) {
	body, err := json.Marshal(o.Spec)
	fields := map[string]any{}
	if err != nil || json.Unmarshal(body, &fields) != nil {
		return "", false
	}
	v, set := fields[field]
	return fmt.Sprint(v), set
}

func (c *Cluster) patch(ctx context.Context, o *v1alpha1.Drive, field string, value any) (*v1alpha1.Drive, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := c.drives.PatchSpec(ctx, o.Name, o.UID, map[string]any{field: value}, owner)
	return out, c.explain(fmt.Sprintf("write spec.%s of Drive %s", field, o.Name), err)
}

// answer waits until the node has answered a field.
func (c *Cluster) answer(ctx context.Context, o *v1alpha1.Drive, field, value string) error {
	name, generation := o.Name, o.Generation
	answered, err := poll(ctx, answerTime, func() (ended bool, err error) {
		if o, err = c.object(ctx, name); err != nil {
			return true, err
		}
		err, ended = applied(o, field, value, generation)
		return ended, err
	})
	if answered || err != nil {
		return err
	}
	text := fmt.Sprintf("node %s has not answered within %v", o.Status.Node, answerTime)
	if waits := waitsFor(o); waits != "" {
		text = "the node waits: " + waits
	}
	return fmt.Errorf("drive %s: %s: %w: %s; the request stays in the spec of the Drive", name, field, drivebay.ErrTimeout, text)
}

// poll calls look until it reports the end, or for limit: then ended is false.
func poll(ctx context.Context, limit time.Duration, look func() (ended bool, err error)) (ended bool, err error) {
	for over := time.Now().Add(limit); ; {
		if ended, err := look(); ended || time.Now().After(over) {
			return ended, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(askTime):
		}
	}
}

// kinds are the errors of the reasons for which a node does not apply a field.
var kinds = map[string]error{
	"NotSupported": drivebay.ErrNoSupport, "Busy": drivebay.ErrBusy, "Refused": drivebay.ErrRefused, "InvalidState": drivebay.ErrInvalid, "NoBay": drivebay.ErrNotFound,
	"Timeout": drivebay.ErrTimeout,
}

// refused is the answer of a node that did not apply a field: with the text of the node, and the error that it had.
type refused struct {
	text string
	kind error
}

func (r *refused) Error() string { return r.text }
func (r *refused) Unwrap() error { return r.kind }

func refusal(name string, r v1alpha1.DriveRequest) error {
	kind := kinds[r.Reason]
	if kind == nil {
		kind = drivebay.ErrRefused
	}
	return &refused{strings.TrimSpace(r.Message), kind}
}

func (c *Cluster) downOf(node string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down[node]
}

// Claim permits volumes on a drive, or withdraws that.
func (c *Cluster) Claim(ctx context.Context, drive string, on bool) error {
	return c.wish(ctx, drive, "claim", on)
}

// Cordon keeps new volumes off a drive, or allows them.
func (c *Cluster) Cordon(ctx context.Context, drive string, on bool) error {
	return c.wish(ctx, drive, "cordoned", on)
}

// Locate switches the light of a bay, by the drive in it: an empty bay has no object.
func (c *Cluster) Locate(ctx context.Context, bay string, on bool) error {
	s := c.Snapshot()
	d, ok := s.Get(bay)
	if !ok {
		found := s.FindBays(bay)
		if len(found) != 1 {
			return fmt.Errorf("bay %q: %w: no drive is known in it", bay, drivebay.ErrNotFound)
		}
		d, _ = s.Get(found[0].Drive)
	}
	return c.wish(ctx, d.ID, "locate", on)
}

// Operate requests a step of the removal of a drive.
func (c *Cluster) Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	if why != "" {
		return fmt.Errorf("--why: %w: a Drive object has no field for the reason", drivebay.ErrNoSupport)
	}
	o, err := c.object(ctx, drive)
	if err != nil {
		return err
	}
	switch do {
	case drivebay.LeaveRelease, drivebay.LeaveRetry:
		return c.wish(ctx, drive, "release", true)
	case drivebay.LeaveCancel:
		return c.wish(ctx, drive, "release", false)
	case drivebay.LeaveApprove:
		return c.wish(ctx, drive, "approveRemoval", o.Status.ID)
	case drivebay.LeaveAccept:
		return c.wish(ctx, drive, "accept", o.Status.ID)
	}
	return onNode("drivebay "+string(do), o.Status.Node)
}
