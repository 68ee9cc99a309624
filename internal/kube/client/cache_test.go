package client

import (
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drivebay/drivebay/api/v1alpha1"
)

func drive(name, uid, version, health string) *v1alpha1.Drive {
	return &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{{}}}, Status: v1alpha1.DriveStatus{Health: health}}
}

// TestCache: the stream of changes may be behind an own write, and an object may be another one of its name.
func TestCache(t *testing.T) {
	changes := 0
	c := NewCache[v1alpha1.Drive](slog.New(slog.DiscardHandler), func() { changes++ })
	health := func(name string) string {
		o, ok := c.Get(name)
		if !ok {
			return "none"
		}
		if o.ManagedFields != nil {
			t.Errorf("%s has managed fields", name)
		}
		return o.Status.Health
	}
	is := func(what, name, want string) {
		t.Helper()
		if got := health(name); got != want {
			t.Errorf("%s: %s is %s, not %s", what, name, got, want)
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, listed := c.Names(); listed {
		t.Error("listed before the first list")
	}
	must(c.Replace([]any{drive("a", "1", "9", "GOOD"), drive("b", "2", "8", "GOOD")}, "10"))
	if names, listed := c.Names(); !listed || len(names) != 2 || changes != 1 {
		t.Errorf("%v %v, %d changes", names, listed, changes)
	}
	c.Put(drive("a", "1", "100", "BAD"))
	must(c.Update(drive("a", "1", "11", "SUSPECT")))
	is("an older version from the stream", "a", "BAD")
	must(c.Update(drive("a", "1", "101", "GOOD")))
	is("a newer version from the stream", "a", "GOOD")
	must(c.Replace([]any{drive("a", "1", "50", "SUSPECT")}, "50"))
	is("an older version in a list", "a", "GOOD")
	is("an object that the list lacks", "b", "none")
	must(c.Add(drive("a", "3", "20", "BAD")))
	is("another object of the name", "a", "BAD")
	must(c.Delete(drive("a", "1", "102", "GOOD")))
	is("the deletion of the one before", "a", "BAD")
	must(c.Delete(drive("a", "3", "103", "GOOD")))
	is("its deletion", "a", "none")
}
