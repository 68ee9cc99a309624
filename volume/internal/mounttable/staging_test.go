package mounttable

import "testing"

// TestIsStaging: only kubelet's staging path of a filesystem has the form of one.
func TestIsStaging(t *testing.T) {
	for target, want := range map[string]bool{
		"/var/lib/kubelet/plugins/kubernetes.io/csi/drivebay.io/0123/globalmount": true,
		"/var/lib/kubelet/pods/11/volumes/kubernetes.io~csi/globalmount/mount":    false,
		"/var/lib/kubelet/pods/11/volumes/kubernetes.io~csi/staging/mount":        false,
		"/var/lib/nomad/staging/volume":                                           false,
	} {
		if IsStaging(target) != want {
			t.Errorf("%s: %v", target, !want)
		}
	}
}
