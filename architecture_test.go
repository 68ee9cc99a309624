package drivebay

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the diagrams of ARCHITECTURE.md anew")

const module = "github.com/drivebay/drivebay"

// may is the import graph: what each package may import of this module, and of
// the world beyond the standard library. A package that is not here may not
// exist; that is how the house stays the one on the drawing.
var may = map[string]struct{ ours, theirs []string }{
	".":                               {},
	"condition":                       {ours: []string{".", "internal/units"}},
	"internal/smart":                  {ours: []string{"."}},
	"internal/health":                 {ours: []string{"."}},
	"internal/content":                {ours: []string{"."}},
	"internal/copies":                 {ours: []string{"."}},
	"internal/units":                  {ours: []string{"."}},
	"internal/gpt":                    {theirs: []string{"github.com/diskfs/go-diskfs/partition/gpt"}},
	"internal/smartctl":               {ours: []string{"."}},
	"internal/assess":                 {ours: []string{".", "internal/smartctl", "internal/smart", "internal/health"}},
	"internal/host":                   {ours: []string{"internal/host/counters", "internal/host/kernelevents", "internal/host/mountoptions"}, theirs: []string{"golang.org/x/sys"}},
	"internal/host/counters":          {theirs: []string{"golang.org/x/sys"}},
	"internal/host/kernelevents":      {theirs: []string{"golang.org/x/sys"}},
	"internal/host/mountoptions":      {theirs: []string{"golang.org/x/sys"}},
	"internal/host/hardware":          {ours: []string{".", "internal/host"}, theirs: []string{"github.com/jaypipes/ghw"}},
	"internal/host/hosttest":          {ours: []string{"internal/host"}},
	"internal/hostsim":                {ours: []string{"internal/drbd", "internal/host"}, theirs: []string{"go.yaml.in/yaml", "github.com/diskfs/go-diskfs/partition/gpt"}},
	"internal/backoff":                {},
	"internal/drbd":                   {theirs: []string{"golang.org/x/sys"}},
	"internal/drbd/drbdtest":          {ours: []string{"internal/drbd"}},
	"internal/replication":            {ours: []string{".", "internal/drbd"}},
	"internal/lane":                   {ours: []string{".", "internal/host"}},
	"drivemgr":                        {ours: []string{".", "internal/backoff", "internal/health", "internal/smart", "internal/content", "internal/copies", "internal/host", "internal/lane", "internal/units"}},
	"lvm":                             {ours: []string{".", "internal/host"}},
	"volume":                          {ours: []string{".", "condition", "internal/backoff", "internal/drbd", "internal/host", "internal/replication", "lvm", "internal/gpt", "internal/content", "internal/copies", "internal/lane", "internal/units"}},
	"internal/history":                {ours: []string{".", "internal/health"}},
	"internal/store":                  {ours: []string{".", "internal/host"}, theirs: []string{"go.etcd.io/bbolt"}},
	"internal/store/storetest":        {ours: []string{"."}},
	"internal/replication/parameters": {ours: []string{"."}},
	"internal/api":                    {ours: []string{".", "internal/replication/parameters"}},
	"internal/rpc":                    {theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/container-storage-interface/spec"}},
	"csi":                             {ours: []string{".", "internal/rpc"}, theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/container-storage-interface/spec"}},
	"addons":                          {ours: []string{".", "addons/healer", "internal/replication/parameters", "internal/rpc"}, theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/container-storage-interface/spec", "github.com/csi-addons/spec"}},
	"addons/healer":                   {theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/container-storage-interface/spec"}},
	"csi/csitest":                     {ours: []string{".", "internal/host", "internal/hostsim"}, theirs: []string{"github.com/kubernetes-csi/csi-test", "github.com/onsi", "google.golang.org/grpc", "google.golang.org/protobuf", "github.com/container-storage-interface/spec"}},
	"internal/cursor":                 {ours: []string{"."}},
	"internal/notify":                 {ours: []string{".", "internal/backoff", "internal/cursor"}},
	"internal/ui":                     {ours: []string{"."}},
	"internal/metrics":                {ours: []string{"."}, theirs: []string{"github.com/prometheus"}},
	"internal/config":                 {ours: []string{".", "internal/health"}, theirs: []string{"go.yaml.in/yaml"}},

	// The objects of Kubernetes, and the only packages that may import its libraries.
	"api/v1alpha1":                     {theirs: []string{"k8s.io/apimachinery"}},
	"internal/kube/client":             {ours: []string{"api/v1alpha1"}, theirs: []string{"k8s.io/api/coordination", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "github.com/go-logr/logr"}},
	"internal/kube/internal/pace":      {theirs: []string{"k8s.io/apimachinery"}},
	"internal/kube/events":             {ours: []string{".", "internal/backoff", "internal/cursor", "internal/kube/client", "internal/kube/internal/pace"}, theirs: []string{"k8s.io/apimachinery"}},
	"internal/kube/internal/drives":    {ours: []string{".", "api/v1alpha1", "internal/backoff", "internal/kube/client", "internal/kube/internal/pace"}, theirs: []string{"k8s.io/apimachinery"}},
	"internal/kube/election":           {ours: []string{"internal/kube/client"}, theirs: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	"internal/kube":                    {ours: []string{"internal/kube/client", "internal/kube/cluster", "internal/kube/controller", "internal/kube/election", "internal/kube/events", "internal/kube/heartbeat", "internal/kube/internal/drives", "internal/kube/volumes"}, theirs: []string{"k8s.io/client-go/rest", "k8s.io/klog/v2"}},
	"internal/kube/internal/translate": {ours: []string{".", "api/v1alpha1", "internal/replication/parameters"}, theirs: []string{"k8s.io/apimachinery"}},
	"internal/kube/volumes":            {ours: []string{".", "api/v1alpha1", "internal/backoff", "internal/kube/client", "internal/kube/internal/pace", "internal/kube/internal/translate"}, theirs: []string{"k8s.io/apimachinery", "k8s.io/client-go"}},
	"internal/kube/cluster": {ours: []string{".", "api/v1alpha1", "internal/kube/client", "internal/kube/events", "internal/kube/heartbeat", "internal/kube/internal/drives", "internal/kube/internal/translate"},
		theirs: []string{"k8s.io/api/coordination", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2"}},
	"internal/kube/heartbeat":  {ours: []string{".", "internal/kube/client", "internal/kube/internal/pace"}, theirs: []string{"k8s.io/api/coordination", "k8s.io/apimachinery"}},
	"internal/kube/controller": {ours: []string{".", "api/v1alpha1", "internal/kube/client", "internal/kube/heartbeat", "internal/kube/internal/translate"}, theirs: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"}},

	"cmd/drivebay/internal/complete":    {ours: []string{".", "cmd/drivebay/internal/reference", "cmd/drivebay/internal/render", "internal/api"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/browser":     {ours: []string{"internal/ui"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/demo":        {ours: []string{".", "cmd/drivebay/internal/browser", "cmd/drivebay/internal/daemon", "cmd/drivebay/internal/simclient", "internal/api", "internal/config"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/page":        {ours: []string{".", "cmd/drivebay/internal/kubectl", "cmd/drivebay/internal/overview", "cmd/drivebay/internal/render"}},
	"cmd/drivebay/internal/kubectl":     {},
	"cmd/drivebay/internal/clusterpage": {ours: []string{".", "cmd/drivebay/internal/kubectl", "cmd/drivebay/internal/page", "internal/ui"}},
	"cmd/drivebay/internal/follow":      {ours: []string{"."}},
	"cmd/drivebay/internal/named":       {ours: []string{"."}},
	"cmd/drivebay/internal/plugin":      {ours: []string{"cmd/drivebay/internal/clusterpage", "cmd/drivebay/internal/kubectl", "internal/api", "internal/kube/cluster"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/plan":        {ours: []string{".", "cmd/drivebay/internal/render"}},
	"cmd/drivebay/internal/progress":    {ours: []string{".", "cmd/drivebay/internal/render"}},
	"cmd/drivebay/internal/columns":     {ours: []string{"cmd/drivebay/internal/render", "internal/config"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/capacity":    {ours: []string{".", "cmd/drivebay/internal/render", "internal/api"}},
	"cmd/drivebay/internal/secretfile":  {ours: []string{"."}},
	"cmd/drivebay/internal/replicate":   {ours: []string{".", "cmd/drivebay/internal/named", "cmd/drivebay/internal/overview", "cmd/drivebay/internal/plan", "cmd/drivebay/internal/render", "cmd/drivebay/internal/secretfile", "internal/api", "internal/replication/parameters"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/local":       {ours: []string{".", "cmd/drivebay/internal/render", "drivemgr", "internal/assess", "internal/health", "internal/host", "internal/host/hardware"}},
	"cmd/drivebay/internal/jsonpath":    {},
	"cmd/drivebay/internal/simclient":   {ours: []string{"cmd/drivebay/internal/render"}},
	"cmd/drivebay/internal/reference":   {ours: []string{".", "internal/kube/events"}, theirs: []string{"github.com/spf13"}},
	"cmd/drivebay/internal/overview":    {ours: []string{".", "internal/api"}},
	"cmd/drivebay/internal/render":      {ours: []string{".", "cmd/drivebay/internal/overview", "internal/assess"}, theirs: []string{"go.yaml.in/yaml"}},
	"cmd/drivebay/internal/daemon": {ours: []string{".", "addons", "cmd/drivebay/internal/clusterpage", "cmd/drivebay/internal/overview", "cmd/drivebay/internal/page", "cmd/drivebay/internal/secretfile", "csi", "docs/api", "drivemgr", "lvm", "volume", "internal/api", "internal/config",
		"internal/drbd",
		"internal/history", "internal/host", "internal/host/hardware", "internal/kube", "internal/metrics", "internal/notify", "internal/rpc", "internal/store", "internal/ui"}},
}

// rooms are the packages below the internal folder of an engine, bottom up: a room may import those
// before it.
var rooms = map[string][]string{
	"volume":   strings.Fields("env ledger steps mountoptions mounttable capabilities partitions moves groups device instances place inventory erase write mirror luks mounts watch provision snapshots expand replicated copyaway evacuate adopt repair"),
	"drivemgr": strings.Fields("sysfs identity inventory kernel kernellog evidence records policy state lights claims selftests poll replacement tracking"),

	"internal/hostsim": strings.Fields("sysfs kernel model pages content block program filesystem crypt lvm drbd faults"),
}

func init() {
	for engine, order := range rooms {
		facade := may[engine]
		below := slices.Clip(facade.ours)
		for _, room := range order {
			may[engine+"/internal/"+room] = struct{ ours, theirs []string }{ours: slices.Clone(below), theirs: facade.theirs}
			below = append(below, engine+"/internal/"+room)
		}
		facade.ours = below
		may[engine] = facade
	}
}

// only says who alone may use the parts of the standard library that touch the
// kernel or other programs.
var only = map[string][]string{
	"os/exec":  {"internal/host", "internal/notify"},                                                                                   // notify: the command of an operator, which touches no drive of ours
	"syscall":  {"internal/host", "internal/notify", "cmd/drivebay", "cmd/drivebay/internal/daemon", "internal/store", "internal/api"}, // cmd and daemon: the names of signals, and madvise; notify: the process group of a command; api: the user of a connection; store: the errors of a disk that takes no writes
	"net/http": {"internal/api", "internal/notify", "internal/metrics", "internal/hostsim", "internal/ui", "cmd/drivebay", "cmd/drivebay/internal/browser", "cmd/drivebay/internal/daemon", "cmd/drivebay/internal/simclient"},
}

type listed struct {
	ImportPath, Name string
	GoFiles, Imports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,GoFiles,Imports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func TestImportGraph(t *testing.T) {
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		free := name == "cmd/drivebay" || strings.HasPrefix(name, "hack/") || strings.HasPrefix(name, "docs/") || name == "deploy"
		rule, known := may[name]
		if !known && !free {
			t.Errorf("%s is not on the drawing: give it a place in the import graph", name)
			continue
		}
		for _, imp := range p.Imports {
			if free {
				continue
			}
			std := !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".")
			switch {
			case std:
				if who, ok := only[imp]; ok && !slices.Contains(who, name) {
					t.Errorf("%s imports %s: only %v may", name, imp, who)
				}
			case strings.HasPrefix(imp, module):
				if !slices.Contains(rule.ours, short(imp)) {
					t.Errorf("%s imports %s: it may import %v", name, short(imp), rule.ours)
				}
			default:
				if !slices.ContainsFunc(rule.theirs, func(p string) bool { return imp == p || strings.HasPrefix(imp, p+"/") }) {
					t.Errorf("%s imports %s: it may import %v", name, imp, rule.theirs)
				}
			}
		}
	}
}

// libraries are the packages that may import a library of which only a part is fit for use
// (ARCHITECTURE.md, "Three libraries").
var libraries = map[string]struct{ part, by []string }{
	"github.com/jaypipes/ghw":     {[]string{"github.com/jaypipes/ghw"}, []string{"internal/host/hardware"}},
	"github.com/diskfs/go-diskfs": {[]string{"github.com/diskfs/go-diskfs/partition/gpt"}, []string{"internal/gpt", "internal/hostsim/internal/content"}},
	"github.com/anatol/smart.go":  {[]string{"github.com/anatol/smart.go"}, []string{"hack/lab/witness"}}, // and tests
}

func TestLibraries(t *testing.T) {
	found := map[string]bool{}
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		for _, imp := range p.Imports {
			for library, rule := range libraries {
				if imp != library && !strings.HasPrefix(imp, library+"/") {
					continue
				}
				if found[library] = true; !slices.Contains(rule.by, name) || !slices.Contains(rule.part, imp) {
					t.Errorf("%s imports %s: only %v may import %v", name, imp, rule.by, rule.part)
				}
			}
		}
	}
	if len(found) != len(libraries) {
		t.Errorf("of the libraries only %v are in use", found)
	}
}

// TestRooms: the documentation of an engine lists the packages below it in their order. Each of them,
// and the engine itself, stays small enough to be read in one go.
func TestRooms(t *testing.T) {
	for engine, order := range rooms {
		doc, err := os.ReadFile(engine + "/doc.go")
		if err != nil {
			t.Fatal(err)
		}
		at, most := 0, maxRoomLines
		if engine == "internal/hostsim" { // a room is a program or a part of the kernel
			most = maxLines
		}
		for _, room := range order {
			i := strings.Index(string(doc[at:]), "//\t"+room+" ")
			if i < 0 {
				t.Errorf("%s/doc.go does not list %s, or not in its order", engine, room)
				continue
			}
			at += i
			readInOneGo(t, engine+"/internal/"+room, most)
		}
		readInOneGo(t, engine, most)
	}
}

func readInOneGo(t *testing.T, dir string, most int) {
	t.Helper()
	if lines, _ := size(t, dir); lines > most {
		t.Errorf("%s has %d lines, at most %d", dir, lines, most)
	}
}

// TestSimulatorImport: the program contains the simulator for --sim only, and one of its files imports it.
func TestSimulatorImport(t *testing.T) {
	files, err := filepath.Glob("cmd/drivebay/*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("cmd/drivebay/internal/*/*.go")
	if err != nil || len(below) == 0 {
		t.Fatalf("no files below cmd/drivebay/internal, %v", err)
	}
	var importers []string
	for _, file := range slices.Concat(files, below) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && bytes.Contains(text, []byte(`"`+module+`/internal/hostsim"`)) {
			importers = append(importers, file)
		}
	}
	if !slices.Equal(importers, []string{"cmd/drivebay/sim.go"}) {
		t.Errorf("%v import internal/hostsim: only cmd/drivebay/sim.go may", importers)
	}
}

// TestUsageMoves walks every pair of usage and event.
func TestUsageMoves(t *testing.T) {
	reached := map[Usage]bool{UsageUnknown: true}
	for u := UsageUnknown; u <= UsageFailed; u++ {
		leaves := false
		for e := UsageSeen; e <= UsageForce; e++ {
			to, err := u.Next(e)
			if want, ok := usageMoves[u][e]; ok != (err == nil) || (ok && to != want) || (!ok && to != u) {
				t.Errorf("%v on %v goes to %v, %v", u, e, to, err)
			}
			if err == nil {
				reached[to], leaves = true, leaves || to != u
			}
		}
		if !leaves {
			t.Errorf("%v is a sink", u)
		}
	}
	for u := UsageUnknown; u <= UsageFailed; u++ {
		if !reached[u] {
			t.Errorf("nothing leads to %v", u)
		}
	}
}

// TestArchitectureDiagrams holds the diagrams of ARCHITECTURE.md against the
// code; -update writes them.
func TestArchitectureDiagrams(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, body := range map[string]string{"imports": importDiagram(t), "usage": usageDiagram(), "csi status": csiDiagram(), "volume usage": volumeUsageDiagram()} {
		want = replaceBlock(t, want, name, body)
	}
	if *update {
		if err := os.WriteFile("ARCHITECTURE.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Error("ARCHITECTURE.md does not show the code as it is: run make generate")
	}
}

func replaceBlock(t *testing.T, page, name, body string) string {
	t.Helper()
	begin, end := "<!-- "+name+": written by make generate -->\n", "<!-- end "+name+" -->"
	i, j := strings.Index(page, begin), strings.Index(page, end)
	if i < 0 || j < i {
		t.Fatalf("ARCHITECTURE.md has no block %q", name)
	}
	return page[:i+len(begin)] + body + page[j:]
}

func importDiagram(t *testing.T) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "hack/") || strings.HasPrefix(name, "docs/") || name == "deploy" {
			continue
		}
		var ours []string
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module) {
				ours = append(ours, short(imp))
			}
		}
		if len(ours) == 0 {
			ours = []string{"-"}
		}
		fmt.Fprintf(&b, "%-26s ─► %s\n", name, strings.Join(ours, "  "))
	}
	b.WriteString("```\n")
	return b.String()
}

func usageDiagram() string {
	var edges []string
	for u := UsageUnknown; u <= UsageFailed; u++ {
		for e := UsageSeen; e <= UsageForce; e++ {
			if to, err := u.Next(e); err == nil {
				edges = append(edges, edge(u, to, e, u == UsageUnknown))
			}
		}
	}
	return diagram(edges)
}

// csiDiagram leaves out what stays where it is: mounts that come and go under a
// volume that is FAILED or being grown.
func csiDiagram() string {
	var edges []string
	for s := CSIUnknown; s <= CSIFailed; s++ {
		for before := CSIUnknown; before <= CSIFailed; before++ {
			for _, e := range csiEvents {
				for _, rest := range rests {
					if to, err := (CSIState{s, before, rest}).Next(e); err == nil && to != s {
						edges = append(edges, edge(s, to, e, s == CSIUnknown))
					}
				}
			}
		}
	}
	return diagram(edges)
}

func volumeUsageDiagram() string {
	var edges []string
	for u := VolumeUsageUnknown; u <= VolumeUsageFailed; u++ {
		for e := VolumeUsageMade; e <= VolumeUsageKeep; e++ {
			if to, err := u.Next(e); err == nil {
				edges = append(edges, edge(u, to, e, u == VolumeUsageUnknown))
			}
		}
	}
	return diagram(edges)
}

func edge(from, to, event fmt.Stringer, first bool) string {
	name := from.String()
	if first {
		name = "[*]"
	}
	return fmt.Sprintf("    %s --> %s: %s\n", name, to, event)
}

// diagram draws every edge once, where it first comes.
func diagram(edges []string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	drawn := map[string]bool{}
	for _, e := range edges {
		if !drawn[e] {
			b.WriteString(e)
		}
		drawn[e] = true
	}
	b.WriteString("```\n")
	return b.String()
}
