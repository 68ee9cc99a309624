package volumes

import (
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

// Object returns the object of a volume; its UID is empty until the object exists.
func (n *Node) Object(id string) client.Reference {
	out := client.Reference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Volume", Name: id}
	if o, ok := n.volumes.objects.Get(id); ok {
		out.UID = o.UID
	}
	return out
}
