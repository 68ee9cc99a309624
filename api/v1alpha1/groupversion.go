package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects.
var GroupVersion = schema.GroupVersion{Group: "drivebay.io", Version: "v1alpha1"}

// AddToScheme registers the objects.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Drive{}, &DriveList{}, &Volume{}, &VolumeList{}, &Snapshot{}, &SnapshotList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
