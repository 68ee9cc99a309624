package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/config"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// chartObject is what the tests read of an object that the chart renders.
type chartObject struct {
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Parameters map[string]string
	Spec       struct {
		Template struct {
			Spec struct {
				HostPID    bool `yaml:"hostPID"`
				HostIPC    bool `yaml:"hostIPC"`
				Containers []chartContainer
				Volumes    []struct {
					Name     string
					HostPath struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

type chartContainer struct {
	Name  string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe struct{ Exec struct{ Command []string } } `yaml:"livenessProbe"`
	VolumeMounts  []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

// renderedCharts returns the objects of each file that hack/chart renders.
func renderedCharts(t *testing.T) map[string][]chartObject {
	t.Helper()
	files, err := filepath.Glob("../../hack/chart/testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d charts, %v", len(files), err)
	}
	out := map[string][]chartObject{}
	for _, file := range append(files, "../../deploy/manifests/drivebay.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "---\n") {
			var o chartObject
			if err := yaml.Unmarshal([]byte(part), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out[file] = append(out[file], o)
		}
	}
	return out
}

func daemonOf(t *testing.T, objects []chartObject) (chartObject, chartContainer) {
	t.Helper()
	for _, o := range objects {
		if o.Kind == "DaemonSet" {
			for _, c := range o.Spec.Template.Spec.Containers {
				if c.Name == "drivebay" {
					return o, c
				}
			}
		}
	}
	t.Fatal("no container of the daemon")
	return chartObject{}, chartContainer{}
}

// TestChartArguments: the chart passes flags of `drivebay serve`, with a configuration that the daemon accepts, and
// the sidecars find its socket.
func TestChartArguments(t *testing.T) {
	for file, objects := range renderedCharts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			set, daemon := daemonOf(t, objects)
			loaded := loadChart(t, objects, daemon)
			if loaded.NodeID != "node-1" {
				t.Errorf("the node is %q", loaded.NodeID)
			}
			socket := config.SocketPath(loaded.CSIEndpoint)
			if want := loaded.VolumeRoots[0] + "/plugins/drivebay.io/csi.sock"; socket != want {
				t.Errorf("the socket is %s, not %s", socket, want)
			}
			for _, v := range set.Spec.Template.Spec.Volumes {
				if v.Name == "plugin" && v.HostPath.Path != filepath.Dir(socket) {
					t.Errorf("the sidecars mount %s, the socket is %s", v.HostPath.Path, socket)
				}
			}
			checkAddons(t, set, loaded)
			checkMetrics(t, daemon, loaded)
			root := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand()
			cmd, rest, err := root.Find(daemon.LivenessProbe.Exec.Command[1:])
			if err != nil || cmd.Name() != "csi" || cmd.ParseFlags(rest) != nil || cmd.Flag("endpoint").Value.String() != loaded.CSIEndpoint || cmd.Flags().Arg(0) != "GetPluginInfo" {
				t.Errorf("the probe is %v: %v", daemon.LivenessProbe.Exec.Command, err)
			}
		})
	}
}

// checkAddons: the daemon serves CSI-Addons where the sidecar of CSI-Addons connects to, if there is one.
func checkAddons(t *testing.T, set chartObject, loaded config.Loaded) {
	t.Helper()
	socket := ""
	for _, c := range set.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			if in, found := strings.CutPrefix(arg, "--csi-addons-address=/csi/"); found {
				socket = filepath.Join(filepath.Dir(config.SocketPath(loaded.CSIEndpoint)), in)
			}
		}
	}
	if got := config.SocketPath(loaded.AddonsEndpoint); got != socket {
		t.Errorf("the sidecar of CSI-Addons connects to %q, the socket is %q", socket, got)
	}
}

// checkMetrics: the daemon serves HTTP on the port of the container, if it has one, with the files that are mounted.
func checkMetrics(t *testing.T, daemon chartContainer, loaded config.Loaded) {
	t.Helper()
	listen := ""
	for _, p := range daemon.Ports {
		if p.Name == "metrics" {
			listen = ":" + strconv.Itoa(p.ContainerPort)
		}
	}
	if loaded.Listen != listen {
		t.Errorf("the daemon listens on %q, the port is %q", loaded.Listen, listen)
	}
	directory := ""
	for _, m := range daemon.VolumeMounts {
		if m.Name == "http" {
			directory = m.MountPath
		}
	}
	for _, file := range []string{loaded.HTTP.CertFile, loaded.HTTP.KeyFile, loaded.HTTP.TokenFile} {
		if (file == "") != (listen == "" || loaded.HTTP.Insecure) || file != "" && filepath.Dir(file) != directory {
			t.Errorf("listen %q, insecure %v, file %q, directory %q", listen, loaded.HTTP.Insecure, file, directory)
		}
	}
}

// loadChart reads the configuration as the daemon does that the chart starts on node-1.
func loadChart(t *testing.T, objects []chartObject, daemon chartContainer) config.Loaded {
	t.Helper()
	i := slices.IndexFunc(objects, func(o chartObject) bool { return o.Kind == "ConfigMap" && o.Metadata.Name == "drivebay" })
	file := filepath.Join(t.TempDir(), "drivebay.yaml")
	if err := os.WriteFile(file, []byte(objects[i].Data["drivebay.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if daemon.Args[0] != "serve" || daemon.Args[1] != "--config=/etc/drivebay/drivebay.yaml" {
		t.Fatalf("the arguments are %v", daemon.Args)
	}
	var rest []string
	for _, arg := range daemon.Args[2:] {
		rest = append(rest, strings.ReplaceAll(arg, "$(NODE_NAME)", "node-1"))
	}
	flags := &cobra.Command{Use: "serve"}
	given := configFlags(flags)
	if err := flags.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	if len(given()) != len(rest) {
		t.Errorf("%d arguments, %d flags: %v", len(rest), len(given()), given())
	}
	loaded, err := config.Load(config.Sources{File: file, Flags: given()})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestChartMounts: the daemon gets what the command of docs/install.md mounts, the kubelet's directory, and the token for
// the API server.
func TestChartMounts(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, objects := range renderedCharts(t) {
		set, daemon := daemonOf(t, objects)
		paths := map[string]string{}
		for _, v := range set.Spec.Template.Spec.Volumes {
			paths[v.Name] = v.HostPath.Path
		}
		mounts := 0
		for _, m := range daemon.VolumeMounts {
			if m.Name == "kubelet" || paths[m.Name] == "" { // configuration, certificate and token are no paths of the machine
				continue
			}
			mounts++
			option := " -v " + paths[m.Name] + ":" + m.MountPath
			if m.ReadOnly {
				option += ":ro"
			}
			if !strings.Contains(string(page), option+" ") {
				t.Errorf("%s: docs/install.md has no%s", file, option)
			}
		}
		if mounts != strings.Count(string(page), " -v /") || !set.Spec.Template.Spec.HostPID || !set.Spec.Template.Spec.HostIPC {
			t.Errorf("%s: %d mounts, hostPID %v, hostIPC %v", file, mounts, set.Spec.Template.Spec.HostPID, set.Spec.Template.Spec.HostIPC)
		}
	}
}

// TestChartClasses: the plugin creates a volume with the parameters of each StorageClass of the chart.
func TestChartClasses(t *testing.T) {
	t.Chdir("../..")
	socket := "unix://" + filepath.Join(shortDir(t), "csi.sock")
	r := serve(t, "--sim", "examples/rack24.yaml", "--csi-endpoint", socket)
	env := maps.Clone(r.env)
	env["CSI_ENDPOINT"] = socket
	text, err := os.ReadFile("deploy/manifests/drivebay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	classes := 0
	for _, part := range strings.Split(string(text), "---\n") {
		var o chartObject
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind != "StorageClass" {
			continue
		}
		classes++
		fs := o.Parameters["csi.storage.k8s.io/fstype"]
		parameters := ""
		for k, v := range o.Parameters {
			parameters += `,"` + k + `":"` + v + `"`
		}
		request := `{"name":"` + o.Metadata.Name + `","capacity_range":{"required_bytes":1073741824},"volume_capabilities":[{"mount":{"fs_type":"` + fs +
			`"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}],"parameters":{` + parameters[1:] + `}}`
		var out, errs string
		eventually(t, patience, func() bool {
			var code int
			out, errs, code = call(t, env, "csi", "CreateVolume", request)
			return code == exitOK
		}, func() string { return o.Metadata.Name + ": " + out + errs })
	}
	if classes != 4 {
		t.Errorf("%d classes", classes)
	}
}

// TestKubernetesCommands: the commands of drivebay that docs/kubernetes.md and the notes of the chart run in a pod exist.
func TestKubernetesCommands(t *testing.T) {
	for _, page := range []string{"docs/kubernetes.md", "hack/chart/testdata/default.notes.txt"} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(text)) {
			_, command, found := strings.Cut(line, " -- drivebay ")
			if !found {
				continue
			}
			count++
			root := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand()
			if cmd, _, err := root.Find(strings.Fields(command)); err != nil || cmd == root {
				t.Errorf("%s: drivebay %s", page, command)
			}
		}
		if count < 1 {
			t.Errorf("%s: %d commands", page, count)
		}
	}
}
