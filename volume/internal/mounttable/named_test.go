package mounttable

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestNameOfPath has the paths of kubelet for the volume pvc-1 of the driver drivebay.io.
func TestNameOfPath(t *testing.T) {
	id := drivebay.VolumeID("pvc-1")
	for target, want := range map[string]pathName{
		"/var/lib/kubelet/plugins/kubernetes.io/csi/drivebay.io/" + checksumOf(id) + "/globalmount": {checksumOf(id), true},
		"/var/lib/kubelet/pods/11/volumes/kubernetes.io~csi/pvc-1/mount":                            {"pvc-1", false},
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/11":                 {"pvc-1", false},
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/staging/pvc-1":                    {"pvc-1", false},
		"/var/lib/nomad/" + id + "/mount":                                                           {id, true},
		"/var/lib/nomad/" + id:                                                                      {id, true},
		"/var/lib/kubelet/pods/11/volumes/kubernetes.io~empty-dir/pvc-1":                            {},
		"/var/lib/kubelet/pods/11/volume-subpaths/pvc-1/app/0":                                      {},
		"/var/lib/kubelet/pods/11/volumes/kubernetes.io~csi/pvc-1/mount/inner":                      {},
		"/": {},
		"":  {},
	} {
		if is, _ := NameOfPath(target); is != want {
			t.Errorf("%s: %v", target, is)
		}
	}
}
