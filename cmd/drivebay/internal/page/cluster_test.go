package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// onNode is a drive of a cluster of several nodes, as the objects show it.
func onNode(node, id, bay string) drivebay.Drive {
	d := inBay(id+"."+node, bay)
	d.Node, d.Slot.Enclosure, d.Slot.Locate = node, node+"/e", "the Drive object"
	d.Claim = &drivebay.Claim{By: drivebay.ClaimedByOperator}
	return d
}

func clusterOf(drives ...drivebay.Drive) ClusterInput {
	s := &drivebay.Snapshot{Seq: 1, At: at, Complete: true, Drives: drives, Machine: drivebay.Machine{Name: "prod", Kind: "cluster"}}
	slices.SortFunc(s.Drives, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	return ClusterInput{Drives: s, Volumes: &drivebay.VolumeSet{}, Now: at}
}

// The nodes are in the order of what is wrong with them and then by their numbers, and their bays are those of the node.
func TestClusterNodes(t *testing.T) {
	bad := onNode("n10", "1", "Slot 2")
	bad.Health, bad.Findings = drivebay.HealthBad, []drivebay.Finding{{Code: "ReallocatedSectors", Severity: drivebay.HealthBad, Text: "1,408 sectors"}}
	bare := onNode("n2", "3", "")
	in := clusterOf(bad, onNode("n2", "1", "Slot 10"), onNode("n2", "2", "Slot 9"), bare, onNode("n1", "1", "Slot 1"))
	in.Machines = map[string]*drivebay.Hardware{"n10": {Vendor: "ACME", Product: "R740", Serial: "X1"}}
	in.Volumes.Volumes = []*drivebay.VolumeView{{Volume: drivebay.Volume{ID: "v", Name: "pvc-1", Node: "n10", Health: drivebay.HealthGood, OperationalStatus: drivebay.Operative, Location: drivebay.Location{Drives: []string{"1.n10"}}}}}
	head, nodes := OfCluster(in)
	if got := strings.Join(head.Nodes, " "); got != "n10 n1 n2" || head.Overview.Machine != "prod" || head.Overview.Verdict == overview.Fine {
		t.Errorf("%s, %+v", got, head.Overview)
	}
	if w := head.Overview.Wrong; len(w) != 1 || w[0].Node != "n10" || w[0].Bay != "Slot 2" {
		t.Errorf("wrong: %+v", w)
	}
	row := nodes[0].Enclosures[0].Drives[0]
	if !strings.Contains(nodes[0].Server, "ACME R740") || row.Why != "1,408 sectors" || row.Codes[0] != "ReallocatedSectors" || row.Volumes[0] != "pvc-1" {
		t.Errorf("%+v", nodes[0])
	}
	var got []string
	for _, e := range nodes[2].Enclosures {
		for _, d := range e.Drives {
			got = append(got, e.Title+":"+d.Bay)
		}
	}
	if strings.Join(got, " ") != "enclosure e:Slot 9 enclosure e:Slot 10 in no bay:" {
		t.Errorf("%q", got)
	}
}

// What is shown of a node that does not report is old: that is the first thing to know of it, and no command is offered.
func TestClusterDown(t *testing.T) {
	bad := onNode("n1", "1", "Slot 1")
	bad.Health = drivebay.HealthBad
	in := clusterOf(bad, onNode("n2", "1", "Slot 1"))
	in.Down = map[string]string{"n1": "node n1: the daemon has not reported for 7 min"}
	in.Drives.Problems = []string{in.Down["n1"] + ": what is shown of it may be old", "another problem"}
	head, nodes := OfCluster(in)
	if nodes[0].Down != "the daemon has not reported for 7 min" || len(head.Overview.Wrong) != 1 || len(head.Problems) != 1 {
		t.Errorf("%+v %+v", nodes[0], head)
	}
	if i := head.Overview.Wrong[0]; i.Kind != "node" || i.State != "NOT REPORTING" || !strings.Contains(i.Next, "spec.nodeName=n1") {
		t.Errorf("%+v", i)
	}
	if d := OfClusterDrive(in, "1.n1"); d.Down == "" || d.Commands != nil {
		t.Errorf("%+v", d)
	}
	if d := OfClusterDrive(in, "1.n2"); d.Down != "" || len(d.Commands) == 0 {
		t.Errorf("%+v", d)
	}
}

// Before the objects are listed the page says so, and what an API server that is away was last heard.
func TestClusterNotListed(t *testing.T) {
	head, nodes := OfCluster(ClusterInput{Drives: &drivebay.Snapshot{}, Away: "connection refused", Now: at})
	if head.Ready || head.Away == nil || head.Away.Why != "connection refused" || head.Overview.Verdict != overview.CannotTell || nodes != nil {
		t.Errorf("%+v", head)
	}
	if OfClusterDrive(ClusterInput{Drives: &drivebay.Snapshot{}}, "1.n1") != nil {
		t.Error("a drive that is not listed is shown")
	}
}

// The page shows the commands of kubectl for what may be done, and has no action.
func TestClusterCommands(t *testing.T) {
	d := onNode("n1", "1", "Slot 1")
	check := func(want ...string) {
		t.Helper()
		var got []string
		detail := OfClusterDrive(clusterOf(d, onNode("n2", "1", "Slot 1")), "1.n1")
		for _, c := range detail.Commands {
			got = append(got, strings.TrimPrefix(c.Command, "kubectl drivebay "))
		}
		if !slices.Equal(got, want) || detail.Drive.Actions != nil {
			t.Errorf("%v %v, want %v", got, detail.Drive.Actions, want)
		}
	}
	check("replace 1.n1", "cordon 1.n1", "locate 1.n1 on")
	d.Cordoned, d.Slot.Lit = true, true
	check("replace 1.n1", "uncordon 1.n1", "locate 1.n1 off")
	d.Usage, d.Slot.Locate = drivebay.UsageReleased, ""
	check("approve 1.n1", "cancel 1.n1")
	d.Usage = drivebay.UsageFailed
	check("cancel 1.n1")
	d.Usage = drivebay.UsageRemoved
	check("accept 1.n1")
}

// Of a long list the page shows the worst, and says how many there are.
func TestClusterMany(t *testing.T) {
	var drives []drivebay.Drive
	for n := range 30 {
		d := onNode(fmt.Sprint("n", n), "1", "Slot 1")
		d.Health = drivebay.HealthSuspect
		if n == 29 {
			d.Health = drivebay.HealthBad
			d.Content.Kind = drivebay.ContentBlank
		}
		drives = append(drives, d)
	}
	head, nodes := OfCluster(clusterOf(drives...))
	if len(nodes) != 30 || len(head.Overview.Wrong) != mostItems || head.All[0] != 30 || head.Overview.Wrong[0].State != "BAD" || !strings.Contains(head.Overview.Next, "1.n29") {
		t.Errorf("%d nodes, %v, %+v", len(nodes), head.All, head.Overview)
	}
}
