package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// leaseAPI is an API server that lists one Lease.
type leaseAPI struct{ lease coordinationv1.Lease }

func (a *leaseAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}, Items: []coordinationv1.Lease{a.lease}}
	text, err := json.Marshal(list)
	return &http.Response{StatusCode: http.StatusOK, Status: "200", Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// TestOldObjects: what the API server does not take from a node that reports is old: the drive and the volume are not sound.
func TestOldObjects(t *testing.T) {
	v := drivebay.VolumeID("a")
	for report, old := range map[string][2]bool{ // the drive, the volume
		`{}`:                               {},
		`{"old":["` + v + `","naa-1.n1"]}`: {true, true},
		`{"old":["*"]}`:                    {false, true},
		`{"old":["*.*"]}`:                  {true, false},
		`{"old":["naa-9.n1"]}`:             {},
	} {
		node, seconds, at := "n1", int32(40), metav1.NewMicroTime(time.Now())
		api := &leaseAPI{coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "drivebay-node-n1", Annotations: map[string]string{"drivebay.io/report": report}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &at}}}
		c, err := New(Options{}, "prod", &rest.Config{Host: "http://api", Transport: api}, "")
		if err != nil {
			t.Fatal(err)
		}
		drive, other := object("naa-1", "n1", nil), object("naa-2", "n1", nil)
		drive.ResourceVersion, other.ResourceVersion = "1", "1"
		_ = c.driveObjects.Replace([]any{drive, other}, "5")
		_ = c.volumeObjects.Replace([]any{&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v, ResourceVersion: "1"}, Spec: v1alpha1.VolumeSpec{Node: "n1", Name: "a"},
			Status: v1alpha1.VolumeStatus{Phase: v1alpha1.VolumeMade, OperationalStatus: "OPERATIVE"}}}, "5")
		c.readLeases(t.Context())
		c.publish()
		d, _ := c.Snapshot().Get("naa-1.n1")
		is, _ := c.Volumes().Get(v)
		if (d.Health == drivebay.HealthUnknown) != old[0] || old[0] && (len(d.Findings) != 1 || d.Findings[0].Code != "ObjectOld") {
			t.Errorf("%s: the drive is %v: %+v", report, d.Health, d.Findings)
		}
		if (is.OperationalStatus == drivebay.OperationalUnknown) != old[1] || is.Condition.Abnormal() != old[1] || old[1] && !strings.Contains(is.Condition[0].Message, "node n1") {
			t.Errorf("%s: the volume is %v: %v", report, is.OperationalStatus, is.Condition)
		}
	}
}
