package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// do gives the node of a volume a task, and returns its answer. Each controller of the cluster may, also one that does not lead:
// kubernetes-csi-addons chooses the one that it calls, and a task makes and deletes no object. The task of a
// caller that goes away is taken back: a node that is down would do it hours later.
func (c *Controller) do(ctx context.Context, id string, want v1alpha1.VolumeTask) (*v1alpha1.VolumeTaskAnswer, error) {
	end, err := c.begin("task of " + id) // which blocks no other request
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, taskTime) // of a caller that would wait for ever
	defer cancel()
	until, _ := ctx.Deadline()
	want.Request, want.Until = rand.Text(), metav1.Time{Time: until}
	answer, err := c.wait(ctx, id, want)
	if err != nil && answer == nil {
		c.takeBack(id, want.Request)
	}
	return answer, err
}

// wait gives a task to the node of a volume, and waits for the answer; nil: there was no answer to it.
func (c *Controller) wait(ctx context.Context, id string, want v1alpha1.VolumeTask) (answer *v1alpha1.VolumeTaskAnswer, err error) {
	defer c.objects.follow(id)()
	for given := false; ; {
		o, changed, err := c.objectOf(ctx, id, given)
		if err != nil {
			return nil, err
		}
		next, err := taskOn(o, want.Request, given)
		if down := c.nodes.down(o.Spec.Node); next == stepWait && down != "" {
			s := volumeStateOf(o)
			return nil, s.errorf(drivebay.ErrUnavailable, "%s", down)
		}
		switch next {
		case stepDone:
			return o.Status.Task, err
		case stepFail:
			return nil, err
		case stepRequest:
			if given, err = c.give(ctx, o, want); err != nil {
				return nil, err
			}
		case stepWait:
			select {
			case <-changed:
			case <-time.After(lookTime):
			case <-ctx.Done():
				return nil, fmt.Errorf("volume %s: %w: node %s has not answered yet", id, ctx.Err(), o.Spec.Node)
			}
		}
	}
}

// objectOf returns the object of a volume. That it has none is no answer while one may come back: the caller would take a volume
// that is not there for one whose replication has ended.
func (c *Controller) objectOf(ctx context.Context, id string, given bool) (*v1alpha1.Volume, <-chan struct{}, error) {
	if !c.objects.isSynced() {
		return nil, nil, fmt.Errorf("volume %s: %w: the volumes of the cluster are not listed yet", id, drivebay.ErrUnavailable)
	}
	o, changed := c.objects.get(id)
	if o == nil && isID(id) { // the cache may be behind
		if _, err := c.volumes.newest(ctx, id); err != nil {
			return nil, nil, err
		}
		o, changed = c.objects.get(id)
	}
	if o != nil {
		return o, changed, nil
	}
	if err := c.Missing(id); !given || !errors.Is(err, drivebay.ErrNotFound) {
		return nil, nil, err
	}
	return nil, nil, fmt.Errorf("volume %s: %w: its object was deleted, and it may exist", id, drivebay.ErrUnavailable)
}

// taskOn decides what is next for a task, which was given to the node before or was not.
func taskOn(o *v1alpha1.Volume, request string, given bool) (step, error) {
	s := volumeStateOf(o)
	a := o.Status.Task
	switch {
	case given && a != nil && a.Request == request:
		return stepDone, translate.Error(a.Error)
	case s.Released:
		return stepFail, s.errorf(drivebay.ErrPending, "it is being deleted")
	case o.Status.Phase != v1alpha1.VolumeMade:
		return stepFail, s.errorf(drivebay.ErrUnavailable, "it is %s on node %s", cmp.Or(o.Status.Phase, v1alpha1.VolumePending), o.Spec.Node)
	case !given:
		return stepRequest, nil
	case o.Spec.Task == nil || o.Spec.Task.Request != request:
		return stepFail, s.errorf(drivebay.ErrPending, "another call has another task for its node")
	}
	return stepWait, nil
}

// give writes a task into an object. It was not given if the object has changed meanwhile.
func (c *Controller) give(ctx context.Context, o *v1alpha1.Volume, t v1alpha1.VolumeTask) (given bool, err error) {
	// Each field is named: a merge patch keeps what it does not name of the task before, such as its force.
	fields := map[string]any{"request": t.Request, "do": t.Do, "until": t.Until, "force": t.Force, "parameters": t.Parameters}
	changed, err := c.opt.Objects.PatchExact(ctx, o, map[string]any{"task": fields}, client.ControllerOwner)
	switch {
	case err == nil:
		c.objects.put(changed)
		return true, nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return false, c.volumes.reread(ctx, o)
	}
	return false, c.volumes.apiError("request", o.Name, err)
}

const (
	// taskTime is the longest wait for an answer, and how long a node lets a task take.
	taskTime     = 3 * time.Minute
	takeBackTime = 5 * time.Second
)

// takeBack removes a task that its node has not answered, whether the request that gave it was answered or not.
func (c *Controller) takeBack(id, request string) {
	ctx, cancel := context.WithTimeout(context.Background(), takeBackTime)
	defer cancel()
	for {
		o, err := c.volumes.newest(ctx, id)
		if err != nil || o == nil || o.Spec.Task == nil || o.Spec.Task.Request != request {
			return // a node does not do it after its time
		}
		changed, err := c.opt.Objects.PatchExact(ctx, o, map[string]any{"task": nil}, client.ControllerOwner)
		if err == nil {
			c.objects.put(changed)
			return
		}
		if !apierrors.IsConflict(err) {
			c.opt.Log.Warn("a task for a node is not taken back", "op", "kube", "volume", id, "node", o.Spec.Node, "err", err)
			return
		}
	}
}

// Reclaim frees what a volume does not use, on its node.
func (c *Controller) Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (out drivebay.Reclaimed, err error) {
	a, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskReclaimSpace})
	if err != nil {
		return out, err
	}
	return drivebay.Reclaimed{Before: translate.UsageOf(a.UsedBefore), After: translate.UsageOf(a.UsedAfter)}, nil
}

// Replicates returns why no node replicates volumes, nil if one can.
func (c *Controller) Replicates(context.Context) error {
	if !c.nodes.replicate() {
		return fmt.Errorf("replication: %w: no node can replicate volumes", drivebay.ErrNoSupport)
	}
	return nil
}

// EnableReplication has the node of a volume replicate it. Like all calls of replication it drops the secrets: an object would
// show them. The node has its own.
func (c *Controller) EnableReplication(ctx context.Context, r drivebay.ReplicationRequest) error {
	_, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskEnableReplication, Parameters: translate.EnableParameters(r)})
	return err
}

// DisableReplication ends it.
func (c *Controller) DisableReplication(ctx context.Context, r drivebay.ReplicationCall) error {
	_, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskDisableReplication, Force: r.Force})
	return err
}

// PromoteVolume makes a volume primary on its node.
func (c *Controller) PromoteVolume(ctx context.Context, r drivebay.ReplicationCall) error {
	_, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskPromote, Force: r.Force})
	return err
}

// DemoteVolume makes it secondary there.
func (c *Controller) DemoteVolume(ctx context.Context, r drivebay.ReplicationCall) error {
	_, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskDemote, Force: r.Force})
	return err
}

// ResyncVolume reconnects it, and reports whether both sides have the same data.
func (c *Controller) ResyncVolume(ctx context.Context, r drivebay.ReplicationCall) (ready bool, err error) {
	a, err := c.do(ctx, r.Volume, v1alpha1.VolumeTask{Do: v1alpha1.TaskResync, Force: r.Force})
	return err == nil && a.Ready, err
}

// ReplicationInfo returns what the node of a volume says of its replication now: a status may be a minute old.
func (c *Controller) ReplicationInfo(ctx context.Context, id string) (out drivebay.ReplicationInfo, err error) {
	a, err := c.do(ctx, id, v1alpha1.VolumeTask{Do: v1alpha1.TaskReplicationInfo})
	if err == nil && a.Replication == nil {
		err = fmt.Errorf("volume %s: replication: %w: its node does not say", id, drivebay.ErrUnavailable)
	}
	if err != nil {
		return out, err
	}
	return translate.ReplicationInfo(a.Replication), nil
}
