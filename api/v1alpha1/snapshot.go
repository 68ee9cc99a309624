package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Snapshot is a snapshot of a volume, on the node of the volume. Its name is the id of the snapshot, which follows
// from the name in the spec, so there can be only one of that name.
//
// Deleting a Snapshot deletes no data: the node makes the object again. Data are deleted by spec.release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=drivebay
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volume`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Drives",type=string,priority=1,JSONPath=`.status.location.drives`
// +kubebuilder:printcolumn:name="Error",type=string,priority=1,JSONPath=`.status.error.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z2-7]{26}$')",message="the name of a Snapshot is the id of the snapshot: 26 characters of base 32"
type Snapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec SnapshotSpec `json:"spec,omitzero"`
	// +optional
	Status SnapshotStatus `json:"status,omitzero"`
}

// SnapshotList is a list of snapshots.
//
// +kubebuilder:object:root=true
type SnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Snapshot `json:"items"`
}

// SnapshotSpec is what the controller requests of a snapshot, or what the node found.
//
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node",message="a snapshot cannot change its node"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",message="the name of a snapshot cannot change"
// +kubebuilder:validation:XValidation:rule="has(self.volume) == has(oldSelf.volume) && (!has(self.volume) || self.volume == oldSelf.volume)",message="the volume of a snapshot cannot change"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.attempt) || (has(self.attempt) && self.attempt >= oldSelf.attempt)",message="spec.attempt never decreases"
type SnapshotSpec struct {
	// Node is the node that has the snapshot, or is to make it: that of the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// Name is the name under which the snapshot was requested. The id follows from it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Name string `json:"name,omitempty"`
	// Volume is the id of the volume, which may have been deleted since.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Volume string `json:"volume,omitempty"`
	// Release requests that the node deletes the snapshot and its data.
	// +kubebuilder:validation:Enum=Delete
	// +optional
	Release string `json:"release,omitempty"`
	// Attempt counts the requests of the controller, as in a Volume.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
}

// SnapshotStatus is what the node observes of a snapshot, and its answer to the spec.
type SnapshotStatus struct {
	// ObservedGeneration is the generation of the spec that the node has answered.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +kubebuilder:validation:Enum=Pending;Ready;Failed;Refused;Releasing;Released;Missing
	// +optional
	Phase VolumePhase `json:"phase,omitempty"`
	// Error is why the node did not do what the spec requests; absent: it did.
	// +optional
	Error *VolumeError `json:"error,omitempty"`

	// Size is the size of the volume at that moment, for people.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Size string `json:"size,omitempty"`
	// Capacity is that size in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Capacity int64 `json:"capacity,omitempty"`
	// Created is when the snapshot was made.
	// +optional
	Created metav1.Time `json:"created,omitzero"`
	// Mode says whether the volume has a filesystem.
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +optional
	Mode string `json:"mode,omitempty"`
	// +kubebuilder:validation:Enum=ext4;xfs;btrfs
	// +optional
	FSType string `json:"fsType,omitempty"`
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// +optional
	Location VolumeLocation `json:"location,omitzero"`
	// Unavailable is why the snapshot cannot be used now: its drive is away or does not answer.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Unavailable string `json:"unavailable,omitempty"`
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
