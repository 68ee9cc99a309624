package translate

import (
	"github.com/drivebay/drivebay"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NodeLabel is the label of a Volume that names its node: a node watches only its own objects.
const NodeLabel = "drivebay.io/node"

// Labels returns the labels of the objects of a node.
func Labels(node string) map[string]string { return map[string]string{NodeLabel: labelValue(node)} }

// NodeSelector selects the objects of a node.
func NodeSelector(node string) string { return NodeLabel + "=" + labelValue(node) }

// labelValue returns the name of a node, or its hash if it is too long for a label.
func labelValue(node string) string {
	if len(validation.IsValidLabelValue(node)) == 0 {
		return node
	}
	return drivebay.ShortHash(node)
}
