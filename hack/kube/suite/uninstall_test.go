//go:build kube

package suite

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKubeUpgradeAndUninstall runs the commands of docs/kubernetes.md, section by section, while a pod writes to a volume: an
// upgrade and a downgrade of the chart, and an uninstallation with an installation after it. The pod runs on, its volume is not
// mounted anew, and no write fails.
func TestKubeUpgradeAndUninstall(t *testing.T) {
	createClaim(t, "guide")
	startPod(t, "guide", "i=0; while i=$((i+1)); echo $i >/data/count; do sync; sleep 0.2; done; echo failed >/data/failed; sleep 3600")
	id := volumeOf(t, "guide")
	before := mounted(t)
	written := 0
	check := func(after string) {
		t.Helper()
		if got := mounted(t); got != before {
			t.Errorf("after %s the pod has\n%s\nbefore\n%s", after, got, before)
		}
		count, err := strconv.Atoi(kubectl(t, "", "exec", "guide", "--", "cat", "/data/count"))
		if err != nil || count <= written {
			t.Errorf("after %s the pod wrote %d times, before %d: %v", after, count, written, err)
		}
		written = count
		eventually(t, time.Minute, func() string {
			return kubectlHas(t, "Ready", "get", "volumes.drivebay.io", id, "-o", "jsonpath={.status.phase}")
		})
	}
	check("the start")

	commands := guide(t, "## Upgrade and uninstall")
	if len(commands) != 3 {
		t.Fatalf("the section has the commands %q", commands)
	}
	shell(t, commands[0])
	shell(t, commands[1])
	installed(t)
	kubectlEquals(t, "registry.example/drivebay:v1.1.0", "--namespace", "drivebay", "get", "pods", "-l", "app.kubernetes.io/name=drivebay", "-o", "jsonpath={.items[*].spec.containers[0].image}")
	check("the upgrade")

	shell(t, "helm rollback drivebay --namespace drivebay")
	installed(t)
	kubectlEquals(t, "registry.example/drivebay:v1.0.0", "--namespace", "drivebay", "get", "pods", "-l", "app.kubernetes.io/name=drivebay", "-o", "jsonpath={.items[*].spec.containers[0].image}")
	check("the downgrade")

	shell(t, commands[2])
	eventually(t, 2*time.Minute, func() string {
		if pods := kubectl(t, "", "--namespace", "drivebay", "get", "pods", "-o", "name"); pods != "" {
			return "after the uninstallation there are still " + pods
		}
		return ""
	})
	if got := mounted(t); got != before {
		t.Errorf("after the uninstallation the pod has\n%s\nbefore\n%s", got, before)
	}

	// The values are those of the cluster, with its drives: the rest of the line is the reader's.
	for _, command := range guide(t, "# Kubernetes") {
		if strings.HasPrefix(command, "helm install ") {
			command += " --values " + lab.Values()
		}
		if out := shell(t, command); strings.HasSuffix(command, "drivebay drives") && strings.Count(out, "loop") < 7 {
			t.Errorf("%s: %s", command, out)
		}
	}
	installed(t)
	check("the installation")

	// The new daemon can also end what an older one began.
	kubectl(t, "", "delete", "pod/guide", "pvc/guide")
	eventually(t, time.Minute, func() string {
		if out := drivebay(t, "volumes", "-o", "json"); strings.Contains(out, id) {
			return "the node still has the volume: " + out
		}
		return ""
	})
}

// mounted is what tells a mount of the pod's volume from another one, and the container from one that was started again.
func mounted(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "exec", "guide", "--", "sh", "-c", "grep ' /data ' /proc/self/mountinfo; ! cat /data/failed 2>/dev/null") + "\n" +
		kubectl(t, "", "get", "pod", "guide", "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}")
}

// guide returns the commands of a section of docs/kubernetes.md.
func guide(t *testing.T, title string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut("\n"+string(text), "\n"+title+"\n")
	if !found {
		t.Fatalf("docs/kubernetes.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	inside := false
	for line := range strings.Lines(section) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && line != "":
			commands = append(commands, line)
		}
	}
	return commands
}

// shell runs a command of a reader.
func shell(t *testing.T, line string) string {
	t.Helper()
	out, err := lab.Run(t.Context(), line)
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return out
}

func installed(t *testing.T) {
	t.Helper()
	if err := lab.Installed(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func kubectlEquals(t *testing.T, want string, args ...string) {
	t.Helper()
	if got := kubectl(t, "", args...); got != want {
		t.Errorf("kubectl %s: %q, want %q", strings.Join(args, " "), got, want)
	}
}
