package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// sidecar says where the flags of a sidecar are: in the module of its source, or here, if it has no module that can be
// downloaded. Then the flags are those of its main.go at that tag.
type sidecar struct {
	module, dir string
	tag         string
	flags       []string
}

var sidecars = map[string]sidecar{
	"provisioner": {module: "github.com/kubernetes-csi/external-provisioner/v6", dir: "cmd/csi-provisioner"},
	"resizer":     {module: "github.com/kubernetes-csi/external-resizer/v2", dir: "cmd/csi-resizer"},
	"snapshotter": {module: "github.com/kubernetes-csi/external-snapshotter/v8", dir: "cmd/csi-snapshotter"},
	"csiAddons":   {module: "github.com/csi-addons/kubernetes-csi-addons", dir: "sidecar"},
	"registrar": {tag: "v2.17.0", flags: []string{"timeout", "csi-address", "plugin-registration-path", "kubelet-registration-path",
		"http-endpoint", "version", "enable-pprof"}},
	"livenessprobe": {tag: "v2.19.0", flags: []string{"probe-timeout", "csi-address", "http-endpoint", "metrics-path"}},
	"healthMonitor": {tag: "v0.18.0", flags: append([]string{"monitor-interval", "resync", "timeout", "list-volumes-interval", "volume-list-add-interval",
		"node-list-add-interval", "worker-threads", "enable-node-watcher"}, commonFlags...)},
}

// commonFlags are those of RegisterCommonFlags of csi-lib-utils v0.24.0.
var commonFlags = []string{"version", "kubeconfig", "csi-address", "leader-election", "leader-election-namespace", "leader-election-lease-duration",
	"leader-election-renew-deadline", "leader-election-retry-period", "leader-election-labels", "kube-api-qps", "kube-api-burst", "http-endpoint", "metrics-address", "metrics-path"}

// containers returns the containers of all pods.
func containers(objects []any) []corev1.Container { return slices.Concat(pods(objects)...) }

// pods returns the containers of each kind of pod.
func pods(objects []any) (out [][]corev1.Container) {
	for _, o := range find[appsv1.DaemonSet](objects) {
		out = append(out, o.Spec.Template.Spec.Containers)
	}
	for _, o := range find[appsv1.Deployment](objects) {
		out = append(out, o.Spec.Template.Spec.Containers)
	}
	return out
}

type image struct{ Repository, Tag, Digest string }

func images(t *testing.T) map[string]image {
	t.Helper()
	var values struct{ Images map[string]image }
	if err := yaml.Unmarshal(read(t, chartDir+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	return values.Images
}

// TestSidecarFlags: each sidecar of the chart knows the flags that it gets, in the version of its image.
func TestSidecarFlags(t *testing.T) {
	known, repositories := map[string][]string{}, map[string]string{}
	for name, i := range images(t) {
		s, found := sidecars[name]
		switch {
		case name == "drivebay":
			continue
		case !found:
			t.Errorf("the flags of %s are not known", name)
		case s.module != "":
			known[name] = flagsOf(t, s, i.Tag)
		case s.tag != i.Tag:
			t.Errorf("the flags of %s are those of %s, not of %s: read its main.go", name, s.tag, i.Tag)
		default:
			known[name] = s.flags
		}
		repositories[i.Repository] = name
	}
	used := map[string]bool{}
	eachSet(t, func(t *testing.T, _ string, objects []any) {
		for _, c := range containers(objects) {
			repository, _, _ := strings.Cut(strings.ReplaceAll(c.Image, "registry.example", "registry.k8s.io/sig-storage"), "@")
			if !strings.Contains(c.Image, "@") {
				repository = repository[:strings.LastIndex(repository, ":")]
			}
			name := repositories[repository]
			if name == "" && strings.HasSuffix(repository, "/drivebay") || repository == "drivebay" {
				continue // cmd/drivebay checks the arguments of the daemon
			}
			used[name] = true
			for _, arg := range c.Args {
				flag, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				if !slices.Contains(known[name], flag) || !hasValue {
					t.Errorf("%s (%s): %s is not --FLAG=VALUE of its source", c.Name, name, arg)
				}
			}
		}
	})
	if len(used) != len(sidecars) {
		t.Errorf("%v of %d sidecars are in a rendered chart", used, len(sidecars))
	}
}

// flagsOf reads the flags from the source of a sidecar, and those of csi-lib-utils that all of them have.
func flagsOf(t *testing.T, s sidecar, version string) []string {
	t.Helper()
	dir := download(t, s.module, version)
	flags := flagNames(t, filepath.Join(dir, s.dir))
	utils := regexp.MustCompile(`github.com/kubernetes-csi/csi-lib-utils (v\S+)`).FindSubmatch(read(t, filepath.Join(dir, "go.mod")))
	if utils == nil || len(flags) < 5 {
		t.Fatalf("%s: %d flags, csi-lib-utils %s", s.module, len(flags), utils)
	}
	if regexp.MustCompile(`standardflags\.RegisterCommonFlags`).Match(sources(t, filepath.Join(dir, s.dir))) {
		flags = append(flags, flagNames(t, filepath.Join(download(t, "github.com/kubernetes-csi/csi-lib-utils", string(utils[1])), "standardflags"))...)
	}
	return flags
}

// download returns the directory of a module in the module cache.
func download(t *testing.T, module, version string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = t.TempDir() // not in this module: its go.sum does not have them
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil || got.Dir == "" {
		t.Fatalf("%s@%s: %v %s", module, version, err, got.Error)
	}
	return got.Dir
}

// goFiles returns the Go files of a directory that are no tests.
func goFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	return files
}

func sources(t *testing.T, dir string) (all []byte) {
	for _, file := range goFiles(t, dir) {
		all = append(all, read(t, file)...)
	}
	return all
}

// flagCall is a function of the package flag or pflag that defines a flag.
var flagCall = regexp.MustCompile(`^(Bool|String|StringArray|StringSlice|StringToString|Int|Int64|Uint|Float32|Float64|Duration|BoolFunc)?(Var)?P?$`)

// flagNames returns the names of the flags that the files of a directory define.
func flagNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, file := range goFiles(t, dir) {
		for _, f := range fileFlags(t, file) {
			names = append(names, f.name)
		}
	}
	return names
}

// fileFlags returns the flags that a file defines. The name is the first string among the arguments, and the short name of
// a function that ends with P the second.
func fileFlags(t *testing.T, file string) (flags []option) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !flagCall.MatchString(function.Sel.Name) {
			return true
		}
		var texts []string
		for _, arg := range call.Args {
			if l, ok := arg.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, text)
			}
		}
		if len(call.Args) < 3 || len(texts) == 0 { // a flag has a name, a value and a description
			return true
		}
		f := option{name: texts[0], value: !strings.HasPrefix(function.Sel.Name, "Bool")}
		if strings.HasSuffix(function.Sel.Name, "P") && len(texts) > 1 {
			f.short = texts[1]
		}
		flags = append(flags, f)
		return true
	})
	return flags
}

// TestFlagNames: the source of a program has its flags and no others.
func TestFlagNames(t *testing.T) {
	dir := t.TempDir()
	source := "package x\nvar a = flag.Bool(\"one\", false, \"no\")\nfunc f() { flag.Var(v, \"two\", \"no\"); fs.StringVarP(&s, \"three\", \"t\", \"no\", \"no\"); fmt.Println(\"four\") }\n"
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := flagNames(t, dir); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%v", got)
	}
}

// TestImageTable: docs/kubernetes.md lists the images of the values.
func TestImageTable(t *testing.T) {
	page := string(read(t, root+"docs/kubernetes.md"))
	all := images(t)
	for name, i := range all {
		row := "| `images." + name + "` | `" + i.Repository + ":" + i.Tag + "` | "
		if name == "drivebay" {
			row = "| `images.drivebay` | `drivebay` with the version of the chart | "
		}
		if strings.Count(page, row) != 1 || i.Digest != "" {
			t.Errorf("docs/kubernetes.md has no row %s, or a digest is set: %q", row, i.Digest)
		}
	}
	if rows := strings.Count(page, "| `images."); rows != len(all) {
		t.Errorf("docs/kubernetes.md has %d images, the values have %d", rows, len(all))
	}
}
