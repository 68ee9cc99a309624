package volumes

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// hasTask reports whether spec.task requests something that the node has not answered. Each task has one answer, whatever it is: a
// caller that wants more gives another task, and one that has gone away takes its task back.
func hasTask(o *v1alpha1.Volume) bool {
	return o.Spec.Task != nil && (o.Status.Task == nil || o.Status.Task.Request != o.Spec.Task.Request)
}

// taskTime is how long a task may take, if its caller waits that long.
const taskTime = 3 * time.Minute

// taskOnce does what spec.task requests, unless it was done and the answer could not be written.
func (n *Node) taskOnce(ctx context.Context, o *v1alpha1.Volume) outcome {
	if was := n.volumes.memoryOf(o.Name).task; was.task.Request == o.Spec.Task.Request {
		return was
	}
	is := outcome{did: callTask}
	is.task, is.err = n.task(ctx, o)
	is.task.Request = o.Spec.Task.Request
	n.volumes.remember(o.Name, func(m *memory[*v1alpha1.Volume]) { m.task = is })
	return is
}

// task does what spec.task requests.
func (n *Node) task(ctx context.Context, o *v1alpha1.Volume) (answer v1alpha1.VolumeTaskAnswer, err error) {
	t, e := o.Spec.Task, n.opt.Engine
	if now := time.Now(); now.After(t.Until.Time) {
		return answer, fmt.Errorf("task %s: %w: its caller waited until %v, and it is %v on node %s", t.Do, drivebay.ErrTimeout, t.Until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), n.opt.Name)
	}
	ctx, cancel := context.WithDeadline(ctx, t.Until.Time)
	defer cancel()
	switch t.Do {
	case v1alpha1.TaskReclaimSpace:
		var done drivebay.Reclaimed
		done, err = e.Reclaim(ctx, drivebay.ReclaimRequest{Volume: o.Name})
		answer.UsedBefore, answer.UsedAfter = translate.Usage(done.Before), translate.Usage(done.After)
	case v1alpha1.TaskReplicationInfo:
		var info drivebay.ReplicationInfo
		if info, err = e.ReplicationInfo(ctx, o.Name); err == nil {
			answer.Replication = translate.Replication(info)
		}
	default:
		answer.Ready, err = n.replicate(ctx, o.Name, t)
	}
	return answer, err
}

// replicate does a task that changes the replication of a volume.
func (n *Node) replicate(ctx context.Context, id string, t *v1alpha1.VolumeTask) (ready bool, err error) {
	secrets, err := n.secrets()
	if err != nil {
		return false, err
	}
	call := drivebay.ReplicationCall{Volume: id, Force: t.Force, Secrets: secrets}
	switch e := n.opt.Engine; t.Do {
	case v1alpha1.TaskEnableReplication:
		var r drivebay.ReplicationRequest
		if r, err = translate.EnableRequest(t); err == nil {
			r.Volume, r.Secrets = id, secrets
			err = e.EnableReplication(ctx, r)
		}
	case v1alpha1.TaskDisableReplication:
		err = e.DisableReplication(ctx, call)
	case v1alpha1.TaskPromote:
		err = e.PromoteVolume(ctx, call)
	case v1alpha1.TaskDemote:
		err = e.DemoteVolume(ctx, call)
	case v1alpha1.TaskResync:
		ready, err = e.ResyncVolume(ctx, call)
	default:
		err = fmt.Errorf("task %q: %w: this daemon is older than the one that requests it", t.Do, drivebay.ErrNoSupport)
	}
	return ready, err
}

// secrets returns the secret of replicated volumes of this node: an object has none.
func (n *Node) secrets() (drivebay.Secrets, error) {
	if n.opt.ReplicationSecret == nil {
		return nil, fmt.Errorf("node %s: %w: it has no secret for replicated volumes: set replication.secretFile, or replication.secret of the chart", n.opt.Name, drivebay.ErrRefused)
	}
	secret, err := n.opt.ReplicationSecret()
	return drivebay.Secrets{drivebay.SecretReplication: secret}, err
}

// setTask writes the answer to spec.task into a status.
func setTask(o *v1alpha1.Volume, s *v1alpha1.VolumeStatus, out outcome) {
	switch {
	case o.Spec.Task == nil:
		s.Task = nil
	case out.did == callTask:
		out.task.Error = translate.ErrorOf(out.err)
		s.Task = &out.task
	}
}
