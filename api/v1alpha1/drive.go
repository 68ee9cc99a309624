package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions of a Drive.
const (
	// DriveSpecApplied says whether the node did what the spec requests. The reason and the message
	// of False say what it refused.
	DriveSpecApplied = "SpecApplied"
	// DriveHealthy is True if the health is GOOD. The reason is the code of the worst finding.
	DriveHealthy = "Healthy"
)

// Drive is a drive of a node. Its name is the id of the drive and the name of the node: "ID.NODE".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=drivebay
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.node`
// +kubebuilder:printcolumn:name="Bay",type=string,JSONPath=`.status.bay.name`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Usage",type=string,JSONPath=`.status.usage`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.status.claimedBy`
// +kubebuilder:printcolumn:name="Free",type=string,JSONPath=`.status.capacity.free`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Device",type=string,priority=1,JSONPath=`.status.device`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.status.identity.model`
// +kubebuilder:printcolumn:name="Serial",type=string,priority=1,JSONPath=`.status.identity.serial`
// +kubebuilder:printcolumn:name="Finding",type=string,priority=1,JSONPath=`.status.findings[0].code`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,priority=1,JSONPath=`.status.cordoned`
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.node) || self.metadata.name.substring(self.metadata.name.indexOf('.') + 1) == self.status.node",message="the name of a Drive is its id, a dot and the name of its node"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.approveRemoval) || (has(self.status) && has(self.status.id) && self.spec.approveRemoval == self.status.id)",message="spec.approveRemoval must be the id of this drive (status.id)"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.accept) || (has(self.status) && has(self.status.id) && self.spec.accept == self.status.id)",message="spec.accept must be the id of this drive (status.id)"
type Drive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec DriveSpec `json:"spec,omitzero"`
	// +optional
	Status DriveStatus `json:"status,omitzero"`
}

// DriveList is a list of drives.
//
// +kubebuilder:object:root=true
type DriveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Drive `json:"items"`
}

// DriveSpec is what people request of a drive. The node acts once on each change of a field; a
// command on the node counts from then on until the field changes again. An empty field requests nothing.
type DriveSpec struct {
	// Claim permits drivebay to use the drive for volumes, or withdraws the permission.
	// +optional
	Claim *bool `json:"claim,omitempty"`
	// Cordoned keeps new volumes off the drive.
	// +optional
	Cordoned *bool `json:"cordoned,omitempty"`
	// Locate switches the light of the bay.
	// +optional
	Locate *bool `json:"locate,omitempty"`
	// Release moves the volumes off the drive, so that it can be removed. False after true keeps the drive.
	// +optional
	Release *bool `json:"release,omitempty"`
	// ApproveRemoval takes the released drive offline, so that it can be pulled. The value is the id of the drive
	// (status.id).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ApproveRemoval string `json:"approveRemoval,omitempty"`
	// Accept returns a drive to use that was removed and is back in the machine. The value is the id of the drive
	// (status.id).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Accept string `json:"accept,omitempty"`
}

// DriveStatus is what the node observes of a drive. It has no telemetry that always changes, such as
// temperatures: that is in the metrics.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.node) || (has(self.node) && self.node == oldSelf.node)",message="the node of a Drive cannot change"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || (has(self.id) && self.id == oldSelf.id)",message="the id of a Drive cannot change"
type DriveStatus struct {
	// ObservedGeneration is the generation of the spec that the node has last acted on.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Node is the name of the node that has the drive, or had it last.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Node string `json:"node,omitempty"`
	// FirstSeen is since when the node knows the drive. A later time than before says that the node lost its records.
	// +optional
	FirstSeen metav1.Time `json:"firstSeen,omitzero"`
	// ID is the id of the drive, by which the node knows it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ID string `json:"id,omitempty"`
	// +optional
	Identity DriveIdentity `json:"identity,omitzero"`
	// Device is the present name of the drive in the kernel of the node.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Device string `json:"device,omitempty"`
	// +kubebuilder:validation:Enum=UNKNOWN;HDD;SSD;NVME
	// +optional
	Type string `json:"type,omitempty"`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Transport string `json:"transport,omitempty"`
	// Size is the size of the drive for people.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Size string `json:"size,omitempty"`
	// LogicalBlockSize is the size of a logical block in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	LogicalBlockSize int32 `json:"logicalBlockSize,omitempty"`
	// +optional
	Bay DriveBay `json:"bay,omitzero"`
	// +optional
	Machine MachineHardware `json:"machine,omitzero"`

	// State says whether the drive is in the machine.
	// +kubebuilder:validation:Enum=UNKNOWN;ONLINE;OFFLINE
	// +optional
	State string `json:"state,omitempty"`
	// Health is the worst severity of the findings.
	// +kubebuilder:validation:Enum=UNKNOWN;GOOD;SUSPECT;BAD
	// +optional
	Health string `json:"health,omitempty"`
	// Findings are the reasons for the health, worst first.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Findings []DriveFinding `json:"findings,omitempty"`
	// Usage is the state of the drive in its working life.
	// +kubebuilder:validation:Enum=UNKNOWN;IN_USE;RELEASING;RELEASED;REMOVING;REMOVED;FAILED
	// +optional
	Usage string `json:"usage,omitempty"`
	// Removal says why and how far the drive leaves; it is absent while the drive is IN_USE.
	// +optional
	Removal *DriveRemoval `json:"removal,omitempty"`
	// Replaces is the drive that was in the bay before.
	// +optional
	Replaces *DriveReplaces `json:"replaces,omitempty"`
	// Cordoned is true if the drive takes no new volumes by request of an operator.
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
	// ClaimedBy is the source of the permission to use the drive; empty: it must not be used.
	// +kubebuilder:validation:Enum=operator;configuration
	// +optional
	ClaimedBy string `json:"claimedBy,omitempty"`
	// Refusals are the reasons why nothing may be written to the drive.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Refusals []string `json:"refusals,omitempty"`
	// System is true if the machine runs from the drive.
	// +optional
	System bool `json:"system,omitempty"`
	// Content says whose data is on the drive.
	// +kubebuilder:validation:Enum=unknown;blank;ours;foreign
	// +optional
	Content string `json:"content,omitempty"`
	// PercentUsed is the used part of the rated endurance of a solid-state drive.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	// +optional
	PercentUsed *int32 `json:"percentUsed,omitempty"`
	// Capacity is the room for volumes.
	// +optional
	Capacity DriveCapacity `json:"capacity,omitzero"`

	// Requests are the fields of the spec that the node has acted on, and the results.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=field
	// +optional
	Requests []DriveRequest `json:"requests,omitempty"`
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DriveIdentity is what a drive reports about itself.
type DriveIdentity struct {
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Model string `json:"model,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Serial string `json:"serial,omitempty"`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Firmware string `json:"firmware,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	WWN string `json:"wwn,omitempty"`
	// Issue says why the drive cannot be distinguished from others, or has the identity of another one.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Issue string `json:"issue,omitempty"`
}

// DriveBay is the place of a drive in its machine.
type DriveBay struct {
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Enclosure string `json:"enclosure,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// HasLight is true if the kernel can switch the light of the bay.
	// +optional
	HasLight bool `json:"hasLight,omitempty"`
	// +optional
	Located bool `json:"located,omitempty"`
	// +optional
	FaultLit bool `json:"faultLit,omitempty"`
}

// MachineHardware says which machine to go to.
type MachineHardware struct {
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Product string `json:"product,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Serial string `json:"serial,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	AssetTag string `json:"assetTag,omitempty"`
}

// DriveFinding is one reason for the health of a drive. docs/health-rules.md lists the codes.
type DriveFinding struct {
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// +kubebuilder:validation:Enum=UNKNOWN;SUSPECT;BAD
	Severity string `json:"severity"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Text string `json:"text,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Advice string `json:"advice,omitempty"`
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// DriveRemoval is why a drive leaves, and how far its removal is.
type DriveRemoval struct {
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Why string `json:"why,omitempty"`
	// Cause is the cause of a failure, or what the drive waits for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Cause string `json:"cause,omitempty"`
	// Percent is how much of the data was moved off the drive.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int32 `json:"percent,omitempty"`
	// Total is how much data there was to move, in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Total int64 `json:"total,omitempty"`
}

// DriveReplaces names the drive that was in the bay before a new one.
type DriveReplaces struct {
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// Against is why the new drive does not take its place; empty: it does.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Against string `json:"against,omitempty"`
	// Taken is when the new drive took its place; absent: it is being checked.
	// +optional
	Taken metav1.Time `json:"taken,omitzero"`
}

// DriveCapacity is the room of a drive for new volumes, in bytes. Whether the drive takes any follows from its
// claim, health, usage and refusals.
type DriveCapacity struct {
	// Total is the size of the drive.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Total int64 `json:"total,omitempty"`
	// Free is the free space for people.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Free string `json:"free,omitempty"`
	// Backings are the kinds of volumes for which the drive has room.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=backing
	// +optional
	Backings []BackingCapacity `json:"backings,omitempty"`
	// Group is the volume group that the drive is in.
	// +optional
	Group *DriveGroup `json:"group,omitempty"`
}

// BackingCapacity is the room for volumes of one backing (the parameter drivebay.io/backing of a StorageClass).
type BackingCapacity struct {
	// Backing is the kind of volumes; the room for a mirror is that for one of its legs.
	// +kubebuilder:validation:Enum=partition;drive;lvm;thin;mirror
	Backing string `json:"backing"`
	// Largest is the size of the largest volume; an encrypted one needs 16 MiB of it for its header.
	// +kubebuilder:validation:Minimum=0
	Largest int64 `json:"largest"`
	// Available is the room for all volumes together.
	// +kubebuilder:validation:Minimum=0
	Available int64 `json:"available"`
}

// DriveGroup is the volume group that a drive is in.
type DriveGroup struct {
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// Kind of the volumes in the group; absent: the group has none yet.
	// +kubebuilder:validation:Enum=LVM;LVM_THIN;LVM_MIRROR
	// +optional
	Kind string `json:"kind,omitempty"`
	// Drives are the ids of all drives of the group.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Drives []string `json:"drives,omitempty"`
}

// DriveRequest is a field of the spec that the node has acted on.
type DriveRequest struct {
	// Field is the name of the field in the spec.
	// +kubebuilder:validation:Enum=claim;cordoned;locate;release;approveRemoval;accept
	Field string `json:"field"`
	// Value is the value that the node has acted on.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Value string `json:"value,omitempty"`
	// State is Applying from before the node begins until it knows the result.
	// +kubebuilder:validation:Enum=Applying;Applied;Refused;Failed
	State string `json:"state"`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z]*$`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
