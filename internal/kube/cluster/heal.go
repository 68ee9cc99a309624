package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// healTime is how long a call waits for the result of a repair. The next call about the volume waits for the same repair.
const healTime = 30 * time.Second

// Heal requests the repair of a volume from its node, and returns the result.
func (c *Cluster) Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	if r.DryRun || r.Fsck || len(r.Options) > 0 || len(r.Secrets) > 0 {
		return drivebay.HealReport{}, onNode("a repair with mount options, a passphrase or a check of the filesystem", "")
	}
	wish, err := c.healWish(ctx, r.Volume)
	if err != nil {
		return drivebay.HealReport{}, err
	}
	var o *v1alpha1.Volume
	var report drivebay.HealReport
	ended, err := poll(ctx, healTime, func() (ended bool, err error) {
		if o, err = c.volumes.Get(ctx, r.Volume); err != nil {
			return true, c.explain("read Volume "+r.Volume, err)
		}
		if report, ended, err = healed(o, wish); ended {
			c.mu.Lock()
			delete(c.healing, r.Volume)
			c.mu.Unlock()
		}
		return ended, err
	})
	if !ended && err == nil {
		err = fmt.Errorf("volume %s: %w: node %s has not ended the repair", r.Volume, drivebay.ErrPending, o.Spec.Node)
	}
	return report, err
}

// wished is a repair that was requested.
type wished struct {
	text       string
	generation int64
}

// healWish requests a repair, unless one that this process has requested has not ended.
func (c *Cluster) healWish(ctx context.Context, id string) (wished, error) {
	c.mu.Lock()
	w, under := c.healing[id]
	c.mu.Unlock()
	if under {
		return w, nil
	}
	o, err := c.volumes.Get(ctx, id)
	if err != nil {
		return w, c.explain("read Volume "+id, err)
	}
	if why := c.downOf(o.Spec.Node); why != "" {
		return w, fmt.Errorf("volume %s: %w: %s", id, drivebay.ErrUnavailable, why)
	}
	w.text = time.Now().UTC().Format(time.RFC3339Nano)
	if o, err = c.volumes.PatchSpec(ctx, id, o.UID, map[string]any{"heal": w.text}, owner); err != nil {
		return w, c.explain("write spec.heal of Volume "+id, err)
	}
	w.generation = o.Generation
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healing == nil {
		c.healing = map[string]wished{}
	}
	c.healing[id] = w
	return w, nil
}

// healed returns the result of a repair that was requested; ended is false until the node has answered.
func healed(o *v1alpha1.Volume, w wished) (r drivebay.HealReport, ended bool, err error) {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.VolumeHealed)
	if c == nil || c.ObservedGeneration < w.generation {
		return r, false, nil
	}
	h := o.Status.Healing
	if h == nil || h.Request != w.text {
		e := &v1alpha1.VolumeError{Code: c.Reason, Message: c.Message}
		return r, c.Status == metav1.ConditionFalse && !translate.Transient(e), translate.Error(e)
	}
	r.Volume = o.Name
	for _, s := range h.Repairs {
		r.Steps = append(r.Steps, drivebay.HealStep{Repair: s.Repair, Why: s.Why, Done: s.Done, Failed: s.Failed})
	}
	r.Remaining = translate.View(o).Condition
	if c.Status == metav1.ConditionFalse && !translate.IsHealResult(c.Reason) { // whatever was abnormal before still is
		return r, true, translate.Error(&v1alpha1.VolumeError{Code: c.Reason, Message: c.Message})
	}
	return r, true, nil
}
