package drives

import (
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
)

// Object returns the object of a drive; its UID is empty until the object exists.
func (m *Mirror) Object(id string) client.Reference {
	name := ObjectName(id, m.opt.Node)
	out := client.Reference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Drive", Name: name}
	if o, exists := m.objects.Get(name); exists {
		out.UID = o.UID
	}
	return out
}
