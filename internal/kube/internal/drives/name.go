package drives

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

// NodeLabel is the label that every object of a node has: by it a node follows its own objects only.
const NodeLabel = "drivebay.io/node"

// A name of an object has at most 253 characters, a value of a label at most 63 (RFC 1123).
const (
	maxName  = 253
	maxLabel = 63
)

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// ObjectName returns the name of the object of a drive: its id, a dot and its node. The same drive has an
// object for each node that knows it: a node never writes what another node observes. The part before
// the first dot is the drive, the rest is the node, which the admission policy relies on.
func ObjectName(id, node string) string {
	name := strings.Trim(notInID.ReplaceAllString(id, "-"), "-")
	if room := maxName - len(node) - 1; name == "" || name != id || len(name) > room {
		sum := hash(id)
		name = strings.Trim(name[:min(len(name), room-len(sum)-1)]+"-"+sum, "-")
	}
	return name + "." + node
}

// labelOf returns the value of NodeLabel for a node.
func labelOf(node string) string {
	if len(node) <= maxLabel {
		return node
	}
	sum := hash(node)
	return node[:maxLabel-len(sum)-1] + "-" + sum
}

// Selector selects the objects of a node.
func Selector(node string) string { return NodeLabel + "=" + labelOf(node) }

func hash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%016x", h.Sum64())
}
