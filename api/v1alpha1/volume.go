package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VolumeReady is the condition of a Volume that is True once the volume was made. The reason of False is the code
// of the error.
const VolumeReady = "Ready"

// VolumeHealed is the condition of a Volume that says how the repair that spec.heal requests has ended.
const VolumeHealed = "Healed"

// VolumeReleasedFrom is the condition of a Volume that has the answer to spec.releaseFrom.
const VolumeReleasedFrom = "ReleasedFromDrive"

// VolumeForgotten is the condition of a Volume that has the answer to spec.forget.
const VolumeForgotten = "Forgotten"

// VolumeGivenUp is the condition of a Volume that is False if the node does not give up its record as spec.adopt requests.
const VolumeGivenUp = "GivenUp"

// VolumePhase is how far the requests of a Volume are.
type VolumePhase string

const (
	// VolumePending: the node has not answered the request to make the volume.
	VolumePending VolumePhase = "Pending"
	// VolumeMade: the volume exists.
	VolumeMade VolumePhase = "Ready"
	// VolumeFailed: the node could not make the volume, and parts of it may exist.
	VolumeFailed VolumePhase = "Failed"
	// VolumeRefused: the node made nothing of the volume, and will not unless the spec changes.
	VolumeRefused VolumePhase = "Refused"
	// VolumeReleasing: the volume is being wiped and removed.
	VolumeReleasing VolumePhase = "Releasing"
	// VolumeReleased: the volume does not exist any more, and the node deletes the object. Only this phase says so:
	// an object that is gone was perhaps deleted by a person.
	VolumeReleased VolumePhase = "Released"
	// VolumeMissing: the volume was made, and the node does not find it any more.
	VolumeMissing VolumePhase = "Missing"
	// VolumeFound: the volume is on drives of the node that are not claimed, and in none of its records. It is only
	// shown, until spec.adopt names the node.
	VolumeFound VolumePhase = "Found"
	// VolumeMoved: the node has given up its record, because spec.adopt names another node.
	VolumeMoved VolumePhase = "Moved"
)

// ReleaseDelete in spec.release requests that the volume and its data are deleted.
const ReleaseDelete = "Delete"

// The modes of a volume.
const (
	ModeFilesystem = "Filesystem"
	ModeBlock      = "Block"
)

// Volume is a volume of a node. Its name is the id of the volume, which follows from the name in the
// spec, so there can be only one of that name.
//
// Deleting a Volume deletes no data: the node makes the object again. Data are deleted by spec.release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=drivebay
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Backing",type=string,JSONPath=`.spec.class.backing`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.operationalStatus`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="CSI",type=string,JSONPath=`.status.csiStatus`
// +kubebuilder:printcolumn:name="Finding",type=string,JSONPath=`.status.findings[0].reason`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Usage",type=string,priority=1,JSONPath=`.status.usage`
// +kubebuilder:printcolumn:name="Drives",type=string,priority=1,JSONPath=`.status.location.drives`
// +kubebuilder:printcolumn:name="Error",type=string,priority=1,JSONPath=`.status.error.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z2-7]{26}$')",message="the name of a Volume is the id of the volume: 26 characters of base 32"
// +kubebuilder:validation:XValidation:rule="self.spec.size.required >= oldSelf.spec.size.required || (has(self.status) && has(self.status.capacity) && self.spec.size.required >= self.status.capacity)",message="a volume never shrinks: spec.size.required cannot become less than the size of the volume"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.releaseFrom) || (has(oldSelf.spec.releaseFrom) && self.spec.releaseFrom == oldSelf.spec.releaseFrom) || (has(self.status) && has(self.status.location) && has(self.status.location.drives) && self.spec.releaseFrom in self.status.location.drives)",message="spec.releaseFrom has to be the id of a drive that the volume is on: one of status.location.drives"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.forget) || (has(oldSelf.spec.forget) && self.spec.forget == oldSelf.spec.forget) || (has(self.status) && has(self.status.location) && has(self.status.location.drives) && self.spec.forget in self.status.location.drives)",message="spec.forget has to be the id of a drive that the volume is on: one of status.location.drives"
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec VolumeSpec `json:"spec,omitzero"`
	// +optional
	Status VolumeStatus `json:"status,omitzero"`
}

// VolumeList is a list of volumes.
//
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Volume `json:"items"`
}

// VolumeSpec is what the controller requests of a volume, or what the node found.
//
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node",message="a volume cannot change its node"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",message="the name of a volume cannot change"
// +kubebuilder:validation:XValidation:rule="has(self.mode) == has(oldSelf.mode) && (!has(self.mode) || self.mode == oldSelf.mode)",message="the mode of a volume cannot change"
// +kubebuilder:validation:XValidation:rule="has(self.class) == has(oldSelf.class) && (!has(self.class) || self.class == oldSelf.class)",message="the class of a volume cannot change"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="the source of a volume cannot change"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.attempt) || (has(self.attempt) && self.attempt >= oldSelf.attempt)",message="spec.attempt never decreases"
type VolumeSpec struct {
	// Node is the node that has the volume, or is to make it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// Name is the name under which the volume was requested. The id follows from it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Name string     `json:"name,omitempty"`
	Size VolumeSize `json:"size"`
	// Mode says whether pods mount a filesystem or use a block device; absent: not known.
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +optional
	Mode string `json:"mode,omitempty"`
	// Class is what the StorageClass requires; absent: not known.
	// +optional
	Class *VolumeClass `json:"class,omitempty"`
	// Source is the volume or snapshot that the volume is a copy of.
	// +optional
	Source *VolumeSource `json:"source,omitempty"`
	// Release requests that the node deletes the volume and its data.
	// +kubebuilder:validation:Enum=Delete
	// +optional
	Release string `json:"release,omitempty"`
	// Heal requests a repair of the volume where it is used, as `drivebay heal` does. Each new text requests one, for
	// example the time.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Heal string `json:"heal,omitempty"`
	// Adopt is the node that is to adopt a volume that is in none of its records, because its drives come from
	// another machine. A node that has the volume in its records, and whose drives are gone, gives up its record first.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Adopt string `json:"adopt,omitempty"`
	// MoveBeforeUse requests that the volume moves before it is staged again whenever its drive has to leave: a pod that
	// starts again at once leaves no time for the copy. Absent: what was set on the node counts.
	// +optional
	MoveBeforeUse *bool `json:"moveBeforeUse,omitempty"`
	// ReleaseFrom is the id of a drive that has to leave and does not wait for the volume: the data leave with the drive. The
	// node acts on it once, as soon as no pod uses the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ReleaseFrom string `json:"releaseFrom,omitempty"`
	// Forget is the id of a drive that is gone for good: the node gives up its record of the volume, whose data are lost. The
	// node acts on it once, as soon as no pod uses the volume, and refuses it while a drive of the volume is in the machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Forget string `json:"forget,omitempty"`
	// Task is what the node is to do with the volume once, for a caller that waits for the answer: the controller gives tasks for
	// CSI-Addons. The node does it with its own secrets.
	// +optional
	Task *VolumeTask `json:"task,omitempty"`
	// Attempt counts the requests of the controller: the node answers each, also after it has refused one. 0:
	// nothing was requested, and the object only shows what the node has.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
}

// VolumeSize is the size of a volume in bytes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limit) || self.limit >= self.required",message="the limit is less than the required size"
type VolumeSize struct {
	// Required is the least size; 0: that of the class.
	// +kubebuilder:validation:Minimum=0
	Required int64 `json:"required"`
	// Limit is the largest size; absent: no limit.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Limit int64 `json:"limit,omitempty"`
}

// VolumeClass has the parameters of the StorageClass, with the defaults filled in.
type VolumeClass struct {
	// Drives is the kind of drive.
	// +kubebuilder:validation:Enum=any;hdd;ssd;nvme
	Drives string `json:"drives"`
	// Backing is what the volume is made of.
	// +kubebuilder:validation:Enum=partition;drive;lvm;thin;mirror
	Backing string `json:"backing"`
	// Wipe is how its data are erased when it is deleted.
	// +kubebuilder:validation:Enum=discard;zero;none
	Wipe string `json:"wipe"`
	// +kubebuilder:validation:Enum=ext4;xfs;btrfs
	FSType string `json:"fsType"`
	// +kubebuilder:validation:Enum=luks2
	// +optional
	Encryption string `json:"encryption,omitempty"`
}

// VolumeSource is what a volume is a copy of: a snapshot or a volume.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshot) != has(self.volume)",message="a volume is a copy of one snapshot or of one volume"
type VolumeSource struct {
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Volume string `json:"volume,omitempty"`
}

// VolumeStatus is what the node observes of a volume, and its answer to the spec. It has no telemetry that
// always changes, such as the used space: that is in the metrics.
type VolumeStatus struct {
	// ObservedGeneration is the generation of the spec that the node has answered.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +kubebuilder:validation:Enum=Pending;Ready;Failed;Refused;Releasing;Released;Missing;Found;Moved
	// +optional
	Phase VolumePhase `json:"phase,omitempty"`
	// Error is why the node did not do what the spec requests; absent: it did.
	// +optional
	Error *VolumeError `json:"error,omitempty"`
	// Healing is the result of the last repair that spec.heal has requested.
	// +optional
	Healing *VolumeHealing `json:"healing,omitempty"`
	// ReleaseFrom is the text of spec.releaseFrom that the node has answered. The condition has the answer.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ReleaseFrom string `json:"releaseFrom,omitempty"`
	// Forget is the text of spec.forget that the node has answered. The condition has the answer.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Forget string `json:"forget,omitempty"`
	// Adopt is the text of spec.adopt that the node has answered: it adopts, or gives up, the volume once.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Adopt string `json:"adopt,omitempty"`

	// Task is the answer to the last task in spec.task.
	// +optional
	Task *VolumeTaskAnswer `json:"task,omitempty"`

	// Size is the size of the volume for people.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Size string `json:"size,omitempty"`
	// Capacity is the size of the volume in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Capacity int64 `json:"capacity,omitempty"`
	// Created is when the volume was made.
	// +optional
	Created metav1.Time `json:"created,omitzero"`
	// BlockDevice says which kind of block device the volume is.
	// +kubebuilder:validation:Enum=RAW;RAW_PART
	// +optional
	BlockDevice string `json:"blockDevice,omitempty"`
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// +optional
	Location VolumeLocation `json:"location,omitzero"`

	// Health is the worst health of the drives of the volume.
	// +kubebuilder:validation:Enum=UNKNOWN;GOOD;SUSPECT;BAD
	// +optional
	Health string `json:"health,omitempty"`
	// OperationalStatus says whether the volume can be used now.
	// +kubebuilder:validation:Enum=UNKNOWN;OPERATIVE;INOPERATIVE;STAGING;MAINTENANCE;MISSING;REMOVING;REMOVED
	// +optional
	OperationalStatus string `json:"operationalStatus,omitempty"`
	// CSIStatus is the state of the volume by the calls of CSI.
	// +kubebuilder:validation:Enum=UNKNOWN;CREATING;CREATED;VOLUME_READY;PUBLISHED;RESIZING;RESIZED;REMOVING;REMOVED;FAILED
	// +optional
	CSIStatus string `json:"csiStatus,omitempty"`
	// Usage says where the volume stands while its drive has to leave.
	// +kubebuilder:validation:Enum=UNKNOWN;IN_USE;RELEASING;RELEASED;FAILED
	// +optional
	Usage string `json:"usage,omitempty"`
	// MoveBeforeUse is true while the volume waits for its move and is not staged before.
	// +optional
	MoveBeforeUse bool `json:"moveBeforeUse,omitempty"`
	// Findings are what is wrong with the volume, worst first. docs/volume-conditions.md lists the reasons.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Findings []VolumeFinding `json:"findings,omitempty"`
	// Publications are the paths of the node at which the volume is staged or published.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Publications []VolumePublication `json:"publications,omitempty"`
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VolumeError is the error of the last attempt to do what the spec requests.
type VolumeError struct {
	// Code is the kind of error, from which the code of the CSI answer follows.
	// +kubebuilder:validation:Enum=NotFound;Ambiguous;Invalid;Busy;Pending;Exists;NoSpace;Range;NoSupport;Permission;Refused;Secret;Timeout;Unavailable;Internal
	Code string `json:"code"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// The tasks of a volume.
const (
	TaskReclaimSpace       = "ReclaimSpace"
	TaskEnableReplication  = "EnableReplication"
	TaskDisableReplication = "DisableReplication"
	TaskPromote            = "Promote"
	TaskDemote             = "Demote"
	TaskResync             = "Resync"
	TaskReplicationInfo    = "ReplicationInfo"
)

// VolumeTask is something that a node is to do once.
type VolumeTask struct {
	// Request tells tasks apart: each new text is a new task.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request"`
	// Do is what to do, as the calls of CSI-Addons of these names.
	// +kubebuilder:validation:Enum=ReclaimSpace;EnableReplication;DisableReplication;Promote;Demote;Resync;ReplicationInfo
	Do string `json:"do"`
	// Until is when the caller stops waiting: a node that comes to the task later does not do it.
	Until metav1.Time `json:"until"`
	// Force is that of the call.
	// +optional
	Force bool `json:"force,omitempty"`
	// Parameters are those of EnableReplication (docs/replication.md).
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Parameters []VolumeTaskParameter `json:"parameters,omitempty"`
}

// VolumeTaskParameter is a parameter of a task.
type VolumeTaskParameter struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// VolumeTaskAnswer is what a task has come to.
type VolumeTaskAnswer struct {
	// Request is the text of the task.
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request"`
	// Error is why it was not done; absent: it was.
	// +optional
	Error *VolumeError `json:"error,omitempty"`
	// Ready is the answer of Resync: both sides have the same data.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// UsedBefore and UsedAfter are the bytes that the volume took before and after ReclaimSpace; absent: not known.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UsedBefore *int64 `json:"usedBefore,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +optional
	UsedAfter *int64 `json:"usedAfter,omitempty"`
	// Replication is the answer of ReplicationInfo.
	// +optional
	Replication *VolumeReplication `json:"replication,omitempty"`
}

// VolumeReplication is the state of the replication of a volume, at the time of the answer.
type VolumeReplication struct {
	// +optional
	Primary bool `json:"primary,omitempty"`
	// Status is HEALTHY while both sides have the same data.
	// +kubebuilder:validation:Enum=HEALTHY;DEGRADED;ERROR
	// +optional
	Status string `json:"status,omitempty"`
	// State is the state in a word or two.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	State string `json:"state,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// LastSync is when both sides had the same data last; absent: never.
	// +optional
	LastSync metav1.Time `json:"lastSync,omitzero"`
	// SyncedBytes and SyncDuration are what the last resynchronization has copied, and how long it took.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SyncedBytes int64 `json:"syncedBytes,omitempty"`
	// +optional
	SyncDuration metav1.Duration `json:"syncDuration,omitzero"`
}

// VolumeHealing is the result of a repair.
type VolumeHealing struct {
	// Request is the text of spec.heal.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Request string `json:"request,omitempty"`
	// Repairs are what was necessary, in that order.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Repairs []VolumeRepair `json:"repairs,omitempty"`
}

// VolumeRepair is one repair that was necessary. docs/repairs.md lists them.
type VolumeRepair struct {
	// +kubebuilder:validation:MaxLength=128
	Repair string `json:"repair"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Why string `json:"why,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Done string `json:"done,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Failed string `json:"failed,omitempty"`
}

// VolumeLocation is what a volume is made of.
type VolumeLocation struct {
	// +kubebuilder:validation:Enum=UNKNOWN;DRIVE;PARTITION;LVM;LVM_THIN;LVM_MIRROR
	// +optional
	Kind string `json:"kind,omitempty"`
	// Drives are the ids of the drives; those of a mirror are in the order of its legs.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Drives []string `json:"drives,omitempty"`
	// Partition is the unique GUID of the partition.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Partition string `json:"partition,omitempty"`
	// VG and LV are the volume group and the logical volume.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VG string `json:"vg,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	LV string `json:"lv,omitempty"`
	// Instance is the tag of the logical volume, which tells it apart from others that had its name.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Instance string `json:"instance,omitempty"`
}

// VolumeFinding is one thing that is wrong with a volume.
type VolumeFinding struct {
	// +kubebuilder:validation:Enum=NONE;DEGRADED;INACCESSIBLE;DATA_LOSS
	Severity string `json:"severity"`
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// VolumePublication is a path at which a volume is staged or published.
type VolumePublication struct {
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// Staging is true for the path to which the other paths are bound.
	// +optional
	Staging bool `json:"staging,omitempty"`
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}
