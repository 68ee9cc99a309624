package volumes

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
)

// writeSkew is how much later than the owners of its fields the API server may date an object: the servers of a cluster have clocks
// of their own, and webhooks run in between.
const writeSkew = 2 * time.Minute

// byController reports whether the controller has written the spec of an object. The API server says who wrote which fields, and when:
// an object that was restored from a backup was written by another program, or by the controller long before it was made.
func byController(o metav1.Object) bool {
	made := o.GetCreationTimestamp()
	for _, f := range o.GetManagedFields() {
		if f.Manager == client.ControllerOwner && f.Subresource == "" && f.Time != nil && f.Time.Add(writeSkew).After(made.Time) {
			return true
		}
	}
	return false
}

// restored returns what the node answers to a request that no caller waits for: the object is from a backup, and its status, which had
// the answer, is not. o is the object as the API server has it. ok is false if the request is to be done.
func (p *part[P, V]) restored(o P, do call) (out outcome, ok bool) {
	a := p.asked(o)
	var none V
	gone := p.find(o.GetName()) == none
	switch {
	case do == callAdopt && a.Phase == "" && !byController(o): // the controller alone makes the object for the node that adopts
		return outcome{did: do, err: fmt.Errorf("%s %s: spec.adopt: %w: %s", a.Kind, a.ID, drivebay.ErrRefused, setTooEarly)}, true
	case do != callCreate && do != callDelete, translate.WasThere(a.Phase), byController(o):
		return out, false
	case gone:
		return outcome{restored: true}, true
	case do == callDelete:
		return outcome{did: do, err: fmt.Errorf("%s %s: delete: %w: spec.release was set before the node wrote the first status, as a restored backup has it", a.Kind, a.ID, drivebay.ErrRefused)}, true
	}
	return out, false // the engine compares what it has with the request
}
