package client

import (
	"fmt"
	"hash/fnv"
)

// NodeLabel is the label that every object of a node has: by it a node follows its own objects only.
const NodeLabel = "drivebay.io/node"

// maxLabel is the length of the longest value of a label (RFC 1123).
const maxLabel = 63

// Labels returns the labels of the objects of a node.
func Labels(node string) map[string]string { return map[string]string{NodeLabel: labelOf(node)} }

// Selector selects the objects of a node.
func Selector(node string) string { return NodeLabel + "=" + labelOf(node) }

func labelOf(node string) string {
	if len(node) <= maxLabel {
		return node
	}
	sum := Hash(node)
	return node[:maxLabel-len(sum)-1] + "-" + sum
}

// Hash returns 16 characters that tell a text from others, for names that would be too long.
func Hash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%016x", h.Sum64())
}
