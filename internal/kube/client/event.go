package client

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Reference names an object.
type Reference struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
}

// Event is an Event of the group events.k8s.io. The type in k8s.io/api imports all of core/v1, which costs the daemon
// more memory than its own objects.
type Event struct {
	metav1.TypeMeta     `json:",inline"`
	metav1.ObjectMeta   `json:"metadata"`
	EventTime           metav1.MicroTime `json:"eventTime"`
	Series              *EventSeries     `json:"series,omitempty"`
	ReportingController string           `json:"reportingController"`
	ReportingInstance   string           `json:"reportingInstance"`
	Action              string           `json:"action"`
	Reason              string           `json:"reason"`
	Regarding           Reference        `json:"regarding"`
	Note                string           `json:"note"`
	Type                string           `json:"type"`
}

// EventSeries says how often an Event has happened, if it has more than once.
type EventSeries struct {
	Count            int32            `json:"count"`
	LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
}

// Events are the Events of all namespaces, and what an Event about a claim needs to know.
type Events struct{ rest rest.Interface }

// NewEvents returns the Events.
func NewEvents(c rest.Interface) Events { return Events{c} }

const eventsVersion = "events.k8s.io/v1"

// eventNamespace is where Events about objects without a namespace are (Kubernetes, pkg/apis/core/validation/events.go).
const eventNamespace = "default"

func eventPath(namespace string) []string {
	if namespace == "" {
		namespace = eventNamespace
	}
	return []string{"apis", eventsVersion, "namespaces", namespace, "events"}
}

// Create makes an Event in the namespace of the object that it is about.
func (e Events) Create(ctx context.Context, event Event) error {
	event.APIVersion, event.Kind = eventsVersion, "Event"
	if event.Namespace = event.Regarding.Namespace; event.Namespace == "" {
		event.Namespace = eventNamespace
	}
	body, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event.Name, err)
	}
	return e.rest.Post().AbsPath(eventPath(event.Namespace)...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
}

// Repeat says how often an Event in a namespace has happened by now: all other fields cannot change.
func (e Events) Repeat(ctx context.Context, namespace, name string, series EventSeries) error {
	body, err := json.Marshal(map[string]any{"series": series})
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}
	return e.rest.Patch(types.MergePatchType).AbsPath(append(eventPath(namespace), name)...).Body(body).Do(ctx).Error()
}

// ClaimOf returns the claim that is bound to the PersistentVolume of a name, if that is the volume of this id.
func (e Events) ClaimOf(ctx context.Context, driver, name, id string) (Reference, bool, error) {
	raw, err := e.rest.Get().AbsPath("api", "v1", "persistentvolumes", name).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return Reference{}, false, err
	}
	var pv struct {
		Spec struct {
			CSI      struct{ Driver, VolumeHandle string }
			ClaimRef *Reference
		}
	}
	if err := json.Unmarshal(raw, &pv); err != nil {
		return Reference{}, false, fmt.Errorf("persistent volume %s: %w", name, err)
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.CSI.Driver != driver || pv.Spec.CSI.VolumeHandle != id {
		return Reference{}, false, nil
	}
	claim := *pv.Spec.ClaimRef
	claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
	return claim, true, nil
}

// List returns the Events of a reporting controller in all namespaces.
func (e Events) List(ctx context.Context, controller string) (out []Event, err error) {
	for next := ""; ; {
		raw, err := e.rest.Get().AbsPath("apis", eventsVersion, "events").SetHeader("Accept", runtime.ContentTypeJSON).
			Param("fieldSelector", "reportingController="+controller).Param("limit", "1000").Param("continue", next).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var list struct {
			Metadata metav1.ListMeta
			Items    []Event
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		out = append(out, list.Items...)
		if next = list.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}
