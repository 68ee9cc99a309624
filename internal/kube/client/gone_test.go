package client

import (
	"strconv"
	"testing"

	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLateAnswer: the answer to an own write that arrives after the deletion does not bring the object back.
func TestLateAnswer(t *testing.T) {
	c := NewCache[v1alpha1.Volume](func(string) {})
	object := func(version int) *v1alpha1.Volume {
		return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: strconv.Itoa(version)}}
	}
	there := func() bool { _, ok := c.Get("a"); return ok }
	c.Put(object(5))
	_ = c.Delete(object(8))
	if c.Put(object(7)); there() {
		t.Error("it is back after its deletion")
	}
	_ = c.Replace(nil, "20")
	if c.Put(object(19)); there() {
		t.Error("it is back after a list without it")
	}
	if c.Put(object(21)); !there() {
		t.Error("a new one is not taken")
	}
	c.Drop("a")
	if _ = c.Update(object(21)); there() {
		t.Error("it is back from the stream, which is late")
	}
}
