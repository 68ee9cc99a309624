package drives

import (
	"regexp"
	"strings"

	"github.com/drivebay/drivebay/internal/kube/client"
)

// maxName is the length of the longest name of an object (RFC 1123).
const maxName = 253

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// ObjectName returns the name of the object of a drive: its id, a dot and its node. The same drive has an
// object for each node that knows it: a node never writes what another node observes. The part before
// the first dot is the drive, the rest is the node, which the admission policy relies on.
func ObjectName(id, node string) string {
	name := strings.Trim(notInID.ReplaceAllString(id, "-"), "-")
	if room := maxName - len(node) - 1; name == "" || name != id || len(name) > room {
		sum := client.Hash(id)
		name = strings.Trim(name[:min(len(name), room-len(sum)-1)]+"-"+sum, "-")
	}
	return name + "." + node
}
