//go:build kube

package apisuite

import (
	"context"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKubeAPISmoke(t *testing.T) {
	a := Up(t)
	c, err := client.New(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	drives := client.NewDrives(c)
	d, err := drives.Apply(t.Context(), &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: "naa-1.node1"}}, "drivebay-node")
	if err != nil {
		t.Fatal(err)
	}
	d.ManagedFields = nil
	d.Status = v1alpha1.DriveStatus{Node: "node1", ID: "naa-1", Health: "GOOD", State: "ONLINE"}
	if d, err = drives.ApplyStatus(context.Background(), d, "drivebay-node"); err != nil {
		t.Fatal(err)
	}
	out := a.Kubectl(t, "", "get", "drives")
	if !strings.Contains(out, "node1") {
		t.Error(out)
	}
	t.Log(out)
}
