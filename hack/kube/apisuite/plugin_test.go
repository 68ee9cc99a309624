//go:build kube

package apisuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// plugin runs kubectl drivebay with a kubeconfig.
func (a *API) plugin(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	bin := filepath.Join(a.dir, "plugins")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a.file("drivebay"), filepath.Join(bin, "kubectl-drivebay")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), a.hyper, append([]string{"kubectl", "drivebay"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+a.dir, "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// ran runs kubectl drivebay, which must succeed and print some texts.
func (a *API) ran(t *testing.T, kubeconfig string, args []string, texts ...string) string {
	t.Helper()
	out, err := a.plugin(t, kubeconfig, args...)
	if err != nil {
		t.Errorf("kubectl drivebay %s: %v: %s", strings.Join(args, " "), err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("kubectl drivebay %s: no %q: %s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// page opens the page of the cluster and looks for the drives of both nodes on it.
func (a *API) page(t *testing.T, kubeconfig string) {
	v := visit(t, exec.Command(filepath.Join(a.dir, "plugins", "kubectl-drivebay"), "ui", "--kubeconfig", kubeconfig))
	head, nodes := v.state(t)
	if len(head.Nodes) != 2 || nodes["rack24"].drives() != 24 || nodes["rack25"].drives() != 24 || nodes["rack24"].Down+nodes["rack25"].Down != "" {
		t.Errorf("the page shows %+v %+v", head, nodes)
	}
}

// forgets gives up a volume of a node whose drive is gone.
func (a *API) forgets(t *testing.T, d *Daemon) {
	d.CLI(t, "volume", "create", "data-2", "--size", "1GiB")
	var set drivebay.VolumeSet
	if err := json.Unmarshal([]byte(d.CLI(t, "volumes", "-o", "json")), &set); err != nil {
		t.Fatal(err)
	}
	v, ok := set.Get(drivebay.VolumeID("data-2"))
	if !ok {
		t.Fatal("no volume data-2")
	}
	drive, _ := d.Snapshot(t).Get(v.Location.Drives[0])
	is := func(text string) {
		t.Helper()
		Eventually(t, 30*time.Second, "the volume is "+text, func() string {
			if out, err := a.plugin(t, a.Kubeconfig, "volumes"); err != nil || !strings.Contains(out, text) {
				return fmt.Sprint(out, err)
			}
			return ""
		})
	}
	is("data-2")
	if out, err := a.plugin(t, a.Kubeconfig, "volume", "forget", "data-2", "--yes"); err == nil || !strings.Contains(out, "is here") {
		t.Errorf("a volume whose drive is here is forgotten: %s", out)
	}
	if out, err := a.plugin(t, a.Kubeconfig, "volume", "release", "data-2"); err == nil || !strings.Contains(out, "has to leave") {
		t.Errorf("a volume whose drive stays is released: %s", out)
	}
	if out, err := a.plugin(t, a.Kubeconfig, "volume", "adopt", v.ID); err == nil || !strings.Contains(out, "only a volume that is found") {
		t.Errorf("a volume of the records is adopted: %s", out)
	}
	d.CLI(t, "sim", "fault", drive.Serial, "vanish")
	is("MISSING")
	if out, err := a.plugin(t, a.Kubeconfig, "volume", "forget", "data-2"); err == nil || !strings.Contains(out, "add --yes") {
		t.Errorf("without --yes: %s", out)
	}
	a.ran(t, a.Kubeconfig, []string{"volume", "forget", "data-2", "--yes"}, "forgotten") // it is the second request with this text
	if out := d.CLI(t, "volumes"); strings.Contains(out, "data-2") {
		t.Errorf("the node has it still: %s", out)
	}
	d.CLI(t, "sim", "fault", drive.Serial, "return") // data-1 may be on it
}

// TestKubePlugin: kubectl drivebay shows two nodes and replaces a drive of one, with the rights of the person and nothing on
// the node.
func TestKubePlugin(t *testing.T) {
	a := Up(t)
	sim := filepath.Join(a.Root, "examples/rack24.yaml")
	d := a.Daemon(t, "rack24", sim, a.Kubeconfig, "--claim", "all")
	other := a.Daemon(t, "rack25", sim, a.Kubeconfig)
	mirrored(t, a, d)
	mirrored(t, a, other)
	d.CLI(t, "volume", "create", "data-1", "--size", "2GiB")
	id := drivebay.VolumeID("data-1")
	Eventually(t, 20*time.Second, "the volume is shown", func() string {
		if out, err := a.plugin(t, a.Kubeconfig, "volumes"); err != nil || !strings.Contains(out, "data-1") || !strings.Contains(out, "OPERATIVE") {
			return fmt.Sprint(out, err)
		}
		return ""
	})

	t.Run("show", func(t *testing.T) {
		out := a.ran(t, a.Kubeconfig, []string{"drives"}, "NODE", "rack24", "rack25", "48 drives", "Slot 17")
		if lines := strings.Count(out, "\n"); lines < 49 {
			t.Errorf("%d lines", lines)
		}
		t.Log(a.ran(t, a.Kubeconfig, []string{"status"}, "FINE"))
		a.ran(t, a.Kubeconfig, []string{"status", "--node", "rack24"}, "rack24")
		a.ran(t, a.Kubeconfig, []string{"tree", "--node", "rack24"}, "rack24\n", "volume data-1", "bay Slot 17")
		a.ran(t, a.Kubeconfig, []string{"tree"}, "enclosure rack24/", "enclosure rack25/")
		a.ran(t, a.Kubeconfig, []string{"volumes"}, "NODE", "rack24", "1 volume")
		a.ran(t, a.Kubeconfig, []string{"explain", "data-1"}, "data-1")
		a.ran(t, a.Kubeconfig, []string{"explain", "Slot 17", "-N", "rack25"}, "GOOD", "bay Slot 17")
		a.ran(t, a.Kubeconfig, []string{"events", "-n", "5"}, "VolumeCreated", id)
		var s drivebay.Snapshot
		if err := json.Unmarshal([]byte(a.ran(t, a.Kubeconfig, []string{"drives", "-o", "json"})), &s); err != nil || len(s.Drives) != 48 {
			t.Errorf("%d drives, %v", len(s.Drives), err)
		}
		for _, args := range [][]string{{"--help"}, {"replace", "--help"}, {"version"}} {
			if out := a.ran(t, "/nonexistent", args); strings.Contains(out, "serve") || strings.Contains(out, "--local") || strings.Contains(out, " drivebay drives --watch") {
				t.Errorf("%v shows what does not work: %s", args, out)
			}
		}
	})
	t.Run("page", func(t *testing.T) { a.page(t, a.Kubeconfig) })
	t.Run("errors", func(t *testing.T) {
		for what, c := range map[string]struct {
			kubeconfig string
			args       []string
			texts      []string
		}{
			"no context":      {a.Kubeconfig, []string{"drives", "--context", "prod"}, []string{"prod", "kubectl config get-contexts"}},
			"no node":         {a.Kubeconfig, []string{"drives", "-N", "rack99"}, []string{`node "rack99": not found`}},
			"several bays":    {a.Kubeconfig, []string{"explain", "Slot 17"}, []string{"rack24", "rack25"}},
			"of a node":       {a.Kubeconfig, []string{"drives", "--local"}, []string{"--local works on a node only"}},
			"no such command": {a.Kubeconfig, []string{"serve"}, []string{`kubectl drivebay has no command "serve"`}},
			"no rights":       {a.WriteKubeconfig(t, "nobody", "x"), []string{"drives"}, []string{"does not accept your credentials"}},
			"refused":         {a.Kubeconfig, []string{"approve", "Slot 17", "-N", "rack24", "--yes"}, []string{"busy", "the drive is in use"}},
		} {
			out, err := a.plugin(t, c.kubeconfig, c.args...)
			if err == nil {
				t.Errorf("%s: %s", what, out)
			}
			for _, text := range c.texts {
				if !strings.Contains(out, text) {
					t.Errorf("%s: no %q: %s", what, text, out)
				}
			}
		}
		// A person who may read and not write.
		a.Kubectl(t, "", "create", "serviceaccount", "reader")
		a.Kubectl(t, "", "create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=drives.drivebay.io,volumes.drivebay.io")
		a.Kubectl(t, "", "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
		reader := a.WriteKubeconfig(t, "reader", strings.TrimSpace(a.Kubectl(t, "", "create", "token", "reader")))
		a.ran(t, reader, []string{"drives"}, "48 drives", "whether the nodes report is not known")
		if out, err := a.plugin(t, reader, "cordon", "Slot 17", "-N", "rack24"); err == nil || !strings.Contains(out, "your account may not do that") {
			t.Errorf("a reader cordons: %s", out)
		}
	})
	t.Run("wishes", func(t *testing.T) {
		_, drive := inBay(t, d, "Slot 17")
		for range 2 { // the second time it is the same request again
			a.ran(t, a.Kubeconfig, []string{"locate", "Slot 17", "on", "-N", "rack24"}, "is on")
			if v, _ := d.Snapshot(t).Get(drive); !v.Slot.Lit {
				t.Error("the light is off")
			}
			d.CLI(t, "locate", "Slot 17", "off")
		}
		a.ran(t, a.Kubeconfig, []string{"cordon", "Slot 17", "-N", "rack24"}, "cordon")
		if v, _ := d.Snapshot(t).Get(drive); !v.Cordoned {
			t.Error("it is not cordoned")
		}
		a.ran(t, a.Kubeconfig, []string{"uncordon", drive + ".rack24"})
	})
	t.Run("heal", func(t *testing.T) {
		a.ran(t, a.Kubeconfig, []string{"heal", "data-1"}, "data-1")
		if out := a.Kubectl(t, "", "get", "volumes.drivebay.io", id, "-o", "jsonpath={.status.conditions[?(@.type==\"Healed\")].reason}"); out != "NothingToRepair" {
			t.Errorf("the node says %q", out)
		}
		if out, err := a.plugin(t, a.Kubeconfig, "heal", "data-1", "--fsck"); err == nil || !strings.Contains(out, "in the pod of the node") {
			t.Errorf("with fsck: %s", out)
		}
	})
	t.Run("forget", func(t *testing.T) { a.forgets(t, d) })
	t.Run("replace", func(t *testing.T) {
		var set drivebay.VolumeSet
		if err := json.Unmarshal([]byte(d.CLI(t, "volumes", "-o", "json")), &set); err != nil {
			t.Fatal(err)
		}
		drive := set.Volumes[0].Location.Drives[0]
		before, _ := d.Snapshot(t).Get(drive)
		ended := make(chan error, 1)
		var out string
		go func() {
			var err error
			out, err = a.plugin(t, a.Kubeconfig, "replace", drive+".rack24", "--yes")
			ended <- err
		}()
		Eventually(t, 3*time.Minute, "the drive can be pulled", func() string {
			if v, _ := d.Snapshot(t).Get(drive); v.Usage != drivebay.UsageRemoved {
				return v.Usage.String()
			}
			return ""
		})
		d.CLI(t, "sim", "fault", before.Serial, "replace")
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		case <-time.After(3 * time.Minute):
			t.Fatal("the replacement does not end")
		}
		for _, text := range []string{"RELEASING", "SAFE TO PULL", "is the successor"} {
			if !strings.Contains(out, text) {
				t.Errorf("no %q: %s", text, out)
			}
		}
		t.Log(out)
		if out := d.CLI(t, "volumes"); !strings.Contains(out, "OPERATIVE") {
			t.Errorf("the volume: %s", out)
		}
	})
}
