package heartbeat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// Selector selects the Leases of nodes.
const Selector = component + "=" + componentNode

const (
	component     = "app.kubernetes.io/component"
	componentNode = "drivebay-node"
	// annotation is the annotation of a Lease that has the report.
	annotation = "drivebay.io/report"
)

// Report is what a node says about itself.
type Report struct {
	// Mirrored is true once all volumes of the node have objects: before, a volume without an object may exist.
	Mirrored bool `json:"mirrored,omitempty"`
	// Starting is true until that holds since the start of the daemon: its drives may have volumes whose objects were deleted while
	// it was down, and a machine that was installed again under the name of another one has that one's Lease.
	Starting bool `json:"starting,omitempty"`
	// Old are the names of the objects that the API server does not take from the node: they show what was.
	Old []string `json:"old,omitempty"`
	// Whole is true if the room is that of all drives: before they are read, there may be more.
	Whole bool `json:"whole,omitempty"`
	// Replicates is true if the node can replicate volumes.
	Replicates bool `json:"replicates,omitempty"`
	// Smallest is the least size of a volume by its filesystem, for those that the node can make; "" is a block volume.
	Smallest map[string]uint64 `json:"smallest,omitempty"`
	// Room is the space by the kind of drive, the backing and the encryption, "nvme/lvm" or "nvme/lvm/luks2".
	Room map[string]Room `json:"room,omitempty"`
}

// Room is space for volumes, in bytes.
type Room struct {
	Available uint64 `json:"available"`
	Largest   uint64 `json:"largest"` // of one volume
}

// Capacity returns the space for new volumes of a class. It is zero for a class that the node cannot make.
func (r *Report) Capacity(c drivebay.Class) drivebay.Capacity {
	smallest, ok := r.Smallest[c.FSType]
	room := r.Room[key(c)]
	if !ok || room.Largest < smallest {
		return drivebay.Capacity{Smallest: smallest}
	}
	return drivebay.Capacity{Available: room.Available, Largest: room.Largest, Smallest: smallest}
}

// mostOld is how many names a report has. More are rarely of some objects only.
const mostOld = 100

// allOf returns what stands for all names of a kind: those of Drives are ID.NODE.
func allOf(name string) string {
	if strings.Contains(name, ".") {
		return "*.*"
	}
	return "*"
}

// IsOld reports whether an object shows what was.
func (r *Report) IsOld(name string) bool {
	return slices.Contains(r.Old, name) || slices.Contains(r.Old, allOf(name))
}

// ReasonOld is the reason of a drive or volume whose object its node cannot write.
const ReasonOld = "ObjectOld"

// OldText says that an object shows what was.
func OldText(node string) string {
	return fmt.Sprintf("node %s: the API server does not take the object from the daemon, and it shows what was: the log of the daemon has the cause", node)
}

func key(c drivebay.Class) string {
	key := cmp.Or(c.Parameters()[drivebay.ParameterClass], "any") + "/" + string(c.Backing)
	if c.Encryption != "" {
		key += "/" + c.Encryption
	}
	return key
}

// leaseName returns the name of the Lease of a node.
func leaseName(node string) string {
	const prefix, limit = "drivebay-node-", 253
	if len(prefix)+len(node) > limit {
		return prefix + client.Hash(node)
	}
	return prefix + node
}

// write writes a report into a Lease.
func (r *Report) write(l *coordinationv1.Lease) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[annotation] = string(text)
	return nil
}

// Read returns the node and the report of a Lease. With an error it returns the node if the report alone cannot be read.
func Read(l *coordinationv1.Lease) (node string, r Report, err error) {
	if l.Spec.HolderIdentity == nil || leaseName(*l.Spec.HolderIdentity) != l.Name {
		return "", r, fmt.Errorf("lease %s: %w: its holder is not the node of its name", l.Name, drivebay.ErrInvalid)
	}
	if err := json.Unmarshal([]byte(cmp.Or(l.Annotations[annotation], "{}")), &r); err != nil {
		return *l.Spec.HolderIdentity, Report{}, fmt.Errorf("lease %s: report: %w", l.Name, err)
	}
	return *l.Spec.HolderIdentity, r, nil
}
