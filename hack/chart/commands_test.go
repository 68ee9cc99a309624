package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// commands checks the commands of a page one after the other, as a reader runs them in the root of the repository.
type commands struct {
	t        *testing.T
	files    map[string]string // that the page has the reader write
	releases map[string]map[string]any
	kinds    map[string]string                          // kind by each name that kubectl knows it by
	objects  map[string][]string                        // names of the chart's objects by kind
	names    []string                                   // containers of the chart's pods
	schemas  map[string]apiextensionsv1.JSONSchemaProps // of the chart's CRDs, by kind
	cli      string                                     // docs/cli.md
}

func newCommands(t *testing.T) *commands {
	c := &commands{t: t, files: map[string]string{}, releases: map[string]map[string]any{}, kinds: map[string]string{}, objects: map[string][]string{},
		schemas: map[string]apiextensionsv1.JSONSchemaProps{}, cli: string(read(t, root+"docs/cli.md"))}
	for _, names := range []string{"Pod pod pods po", "Node node nodes no", "Event event events ev", "Namespace namespace namespaces ns", "Secret secret secrets", "Lease lease leases", "CSINode csinode csinodes",
		"PersistentVolumeClaim persistentvolumeclaim persistentvolumeclaims pvc", "PersistentVolume persistentvolume persistentvolumes pv", "StorageClass storageclass storageclasses sc",
		"DaemonSet daemonset daemonsets ds", "Deployment deployment deployments deploy", "CSIStorageCapacity csistoragecapacity csistoragecapacities", "ConfigMap configmap configmaps cm",
		"CustomResourceDefinition customresourcedefinition customresourcedefinitions crd crds", "VolumeSnapshot volumesnapshot volumesnapshots", "VolumeSnapshotClass volumesnapshotclass volumesnapshotclasses"} {
		words := strings.Fields(names)
		for _, name := range words[1:] {
			c.kinds[name] = words[0]
		}
	}
	eachSet(t, func(t *testing.T, _ string, objects []any) {
		for _, crd := range find[apiextensionsv1.CustomResourceDefinition](objects) {
			names := crd.Spec.Names
			for _, name := range append([]string{names.Plural, names.Singular, names.Plural + "." + crd.Spec.Group}, names.ShortNames...) {
				c.kinds[name] = names.Kind
			}
			c.schemas[names.Kind] = *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
		for _, o := range objects {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(encode(t, o)), &head); err != nil {
				t.Fatal(err)
			}
			c.objects[head.Kind] = append(c.objects[head.Kind], head.Metadata.Name)
		}
		for _, container := range containers(objects) {
			c.names = append(c.names, container.Name)
		}
	})
	return c
}

var (
	block  = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	inline = regexp.MustCompile("`((?:kubectl|helm) [^`]+)`")
	file   = regexp.MustCompile(`^# ([a-z]+\.yaml)\n`)
)

// page checks the command blocks of a page, then the commands in its text, and returns how many there were. The name of
// a command alone is no command.
func (c *commands) page(text string) (count int) {
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		switch language, body := b[1], b[2]; language {
		case "yaml":
			if name := file.FindStringSubmatch(body); name != nil {
				c.files[name[1]] = body
			}
		case "sh":
			for line := range strings.Lines(strings.ReplaceAll(body, "\\\n", " ")) {
				if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				count++
				c.report(line)
			}
		case "console":
			for line := range strings.Lines(body) {
				if command, found := strings.CutPrefix(line, "$ "); found {
					count++
					c.report(strings.TrimSpace(command))
				}
			}
		default:
			c.t.Errorf("a block of the language %q: commands are in blocks of sh", language)
		}
	}
	for _, m := range inline.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		if words := strings.Fields(m[1]); len(words) > 2 {
			count++
			c.report(m[1])
		}
	}
	return count
}

func (c *commands) report(line string) {
	c.t.Helper()
	if err := c.run(line); err != nil {
		c.t.Errorf("%s: %v", line, err)
	}
}

func (c *commands) run(line string) error {
	words, err := split(line)
	if err != nil {
		return err
	}
	switch words[0] {
	case "helm":
		return c.helm(words[1:])
	case "kubectl":
		return c.kubectl(words[1:])
	}
	return fmt.Errorf("%s is neither helm nor kubectl", words[0])
}

// split splits a line into words as a shell does: single quotes, double quotes and $(...) hold together.
func split(line string) (words []string, err error) {
	var word strings.Builder
	begun, depth := false, 0
	var quote rune
	for _, r := range line {
		switch {
		case quote == 0 && depth == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
			continue
		case quote != 0 && r == quote && depth == 0:
			quote = 0
			continue
		case quote == 0 && depth == 0 && strings.ContainsRune("|&;<>", r):
			return nil, fmt.Errorf("%c: one command a line", r)
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
		begun = true
		word.WriteRune(r)
	}
	if quote != 0 || depth != 0 {
		return nil, errors.New("a quote or parenthesis is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// option is a flag of a program: its names, and whether it takes a value.
type option struct {
	name, short string
	value       bool
}

// parse takes the flags out of words, up to "--".
func parse(words []string, known []option) (rest []string, given map[string][]string, err error) {
	given = map[string][]string{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--" {
			return append(rest, append([]string{word}, words...)...), given, nil
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			rest = append(rest, word)
			continue
		}
		name, value, hasValue := strings.Cut(word, "=")
		i := slices.IndexFunc(known, func(o option) bool { return name == "--"+o.name || o.short != "" && name == "-"+o.short })
		if i < 0 {
			return nil, nil, fmt.Errorf("there is no flag %s", name)
		}
		if known[i].value && !hasValue {
			if len(words) == 0 {
				return nil, nil, fmt.Errorf("%s has no value", name)
			}
			value, words = words[0], words[1:]
		}
		given[known[i].name] = append(given[known[i].name], value)
	}
	return rest, given, nil
}

// verbs are the commands of kubectl that the pages use, with their flags (kubectl v0.37, pkg/cmd).
var verbs = map[string][]option{
	"annotate":     {{"overwrite", "", false}},
	"apply":        {{"filename", "f", true}, {"kustomize", "k", true}, {"server-side", "", false}, {"force-conflicts", "", false}},
	"create":       {{"filename", "f", true}, {"from-literal", "", true}, {"from-file", "", true}, {"dry-run", "", true}},
	"delete":       {{"filename", "f", true}, {"kustomize", "k", true}, {"wait", "", false}, {"ignore-not-found", "", false}},
	"describe":     {},
	"drain":        {{"ignore-daemonsets", "", false}, {"delete-emptydir-data", "", false}},
	"exec":         {{"container", "c", true}, {"stdin", "i", false}, {"tty", "t", false}},
	"get":          {{"output", "o", true}, {"watch", "w", false}, {"all-namespaces", "A", false}, {"selector", "l", true}, {"field-selector", "", true}, {"show-labels", "", false}, {"sort-by", "", true}},
	"label":        {{"overwrite", "", false}},
	"logs":         {{"container", "c", true}, {"follow", "f", false}, {"previous", "p", false}, {"tail", "", true}},
	"port-forward": {{"address", "", true}},
	"patch":        {{"type", "", true}, {"patch", "p", true}},
	"rollout":      {{"timeout", "", true}},
	"uncordon":     {},
	"wait":         {{"for", "", true}, {"timeout", "", true}},
}

var everywhere = []option{{"namespace", "n", true}, {"context", "", true}, {"kubeconfig", "", true}}

// placeholder is a word that a reader replaces.
var placeholder = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

var ports = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

// kubectl checks that a command names flags, objects and files that exist.
func (c *commands) kubectl(words []string) error {
	start, _, err := parse(words[:leading(words)], everywhere)
	if err != nil || len(start) > 0 {
		return fmt.Errorf("%v before the command: %v", start, err)
	}
	words, global := words[leading(words):], words[:leading(words)]
	if len(words) == 0 {
		return errors.New("no command")
	}
	verb := words[0]
	if verb == "drivebay" { // the plugin
		return c.drivebay(words[1:])
	}
	known, found := verbs[verb]
	if !found {
		return fmt.Errorf("kubectl %s is not known to this test", verb)
	}
	rest, given, err := parse(append(slices.Clone(global), words[1:]...), append(slices.Clone(known), everywhere...))
	if err != nil {
		return err
	}
	for _, n := range given["namespace"] {
		if n != namespace && !placeholder.MatchString(n) {
			return fmt.Errorf("namespace %s", n)
		}
	}
	for _, name := range given["container"] {
		if !slices.Contains(c.names, name) {
			return fmt.Errorf("no pod of the chart has a container %s", name)
		}
	}
	switch verb {
	case "apply", "create", "delete":
		if len(given["filename"])+len(given["kustomize"]) > 0 {
			return errors.Join(c.eachFile(given["filename"]), c.eachBase(given["kustomize"]), noneOf(rest))
		}
		if verb == "create" {
			return c.create(rest)
		}
	case "exec":
		i := slices.Index(rest, "--")
		if i != 1 || len(rest) < 4 || rest[2] != "drivebay" {
			return errors.New("a command in a pod is `exec POD -- drivebay ...`")
		}
		return errors.Join(c.pod(rest[0]), c.drivebay(rest[3:]))
	case "rollout":
		if len(rest) != 2 || !slices.Contains([]string{"status", "restart", "undo", "history"}, rest[0]) {
			return fmt.Errorf("kubectl rollout %v", rest)
		}
		return c.named(rest[1:])
	case "port-forward":
		if len(rest) != 2 || !ports.MatchString(rest[1]) {
			return fmt.Errorf("kubectl port-forward %v", rest)
		}
		return c.pod(rest[0])
	case "logs":
		if len(rest) != 1 {
			return fmt.Errorf("kubectl logs %v", rest)
		}
		return c.pod(rest[0])
	case "patch":
		if err := c.named(slices.Clone(rest)); err != nil || len(rest) != 2 || len(given["patch"]) != 1 || !slices.Equal(given["type"], []string{"merge"}) {
			return fmt.Errorf("kubectl patch %v: %w", rest, err)
		}
		return c.patch(c.kinds[rest[0]], given["patch"][0])
	case "wait":
		if len(rest) != 2 || len(given["for"]) != 1 {
			return fmt.Errorf("kubectl wait %v", rest)
		}
		return errors.Join(c.condition(c.kinds[rest[0]], given["for"][0]), c.named(rest))
	case "drain", "uncordon":
		if len(rest) != 1 {
			return fmt.Errorf("kubectl %s %v", verb, rest)
		}
		return nil
	case "label", "annotate":
		if len(rest) < 3 || !strings.ContainsAny(rest[2], "=-") {
			return fmt.Errorf("kubectl %s %v", verb, rest)
		}
		return c.named(rest[:2])
	}
	return c.named(rest)
}

// leading returns how many words are flags of kubectl before its command.
func leading(words []string) (n int) {
	for n < len(words) && strings.HasPrefix(words[n], "-") {
		if n++; !strings.Contains(words[n-1], "=") {
			n++
		}
	}
	return min(n, len(words))
}

func noneOf(words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("%v beside a file", words)
	}
	return nil
}

// pod checks what a command in a container may name: a pod, or an object that has pods.
func (c *commands) pod(word string) error {
	if !strings.Contains(word, "/") {
		word = "pod/" + word
	}
	return c.named([]string{word})
}

// named checks KIND, KIND NAME... or KIND/NAME... .
func (c *commands) named(words []string) error {
	if len(words) == 0 {
		return errors.New("names no kind")
	}
	kind, _, slash := strings.Cut(words[0], "/")
	if !slash {
		for _, k := range strings.Split(kind, ",") {
			if c.kinds[k] == "" {
				return fmt.Errorf("there is no resource %s", k)
			}
		}
		for i := range words[1:] {
			words[i+1] = kind + "/" + words[i+1]
		}
		words = words[1:]
	}
	for _, word := range words {
		kind, name, _ := strings.Cut(word, "/")
		full := c.kinds[kind]
		switch {
		case full == "":
			return fmt.Errorf("there is no resource %s", kind)
		case !placeholder.MatchString(name) && !slices.Contains(c.objects[full], name) && !c.inFile(full, name) && c.schemas[full].Type == "": // the objects of a CRD have names of their own
			return fmt.Errorf("the chart has no %s %s", full, name)
		}
	}
	return nil
}

// inFile reports whether a file of the page has an object.
func (c *commands) inFile(kind, name string) bool {
	for _, text := range c.files {
		if strings.Contains(text, "\nkind: "+kind+"\nmetadata: {name: "+name+"}\n") {
			return true
		}
	}
	return false
}

// patch checks that a merge patch sets fields that the kind has, to values of their types.
func (c *commands) patch(kind, text string) error {
	var patch any
	if err := json.Unmarshal([]byte(text), &patch); err != nil {
		return err
	}
	if kind == "PersistentVolume" { // Kubernetes' own: its types are the schema
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		return dec.Decode(&corev1.PersistentVolume{})
	}
	return fits(kind, patch, c.schemas[kind])
}

// fits checks a part of an object with its part of the schema.
func fits(path string, value any, schema apiextensionsv1.JSONSchemaProps) error {
	types := map[string]bool{"string": false, "boolean": false, "object": false}
	switch v := value.(type) {
	case map[string]any:
		types["object"] = true
		for key, inner := range v {
			property, found := schema.Properties[key]
			if !found {
				return fmt.Errorf("there is no field %s.%s", path, key)
			}
			if err := fits(path+"."+key, inner, property); err != nil {
				return err
			}
		}
	case string:
		types["string"] = true
	case bool:
		types["boolean"] = true
	case nil:
		return nil // removes the field
	}
	if !types[schema.Type] {
		return fmt.Errorf("%s is a %s, not %v", path, schema.Type, value)
	}
	return nil
}

var jsonPath = regexp.MustCompile(`^jsonpath=\{((?:\.\w+)+)\}(=\w+)?$`)

// condition checks the condition that a wait is for.
func (c *commands) condition(kind, text string) error {
	if text == "delete" || strings.HasPrefix(text, "condition=") {
		return nil
	}
	m := jsonPath.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("--for=%s", text)
	}
	for id, empty := range kinds {
		if strings.HasSuffix(id, " "+kind) { // not the chart's own: its type is the schema
			fields := strings.Split(m[1][1:], ".")
			dec := json.NewDecoder(strings.NewReader(`{"` + strings.Join(fields, `":{"`) + `":null` + strings.Repeat("}", len(fields))))
			dec.DisallowUnknownFields()
			return dec.Decode(empty())
		}
	}
	schema := c.schemas[kind]
	for _, field := range strings.Split(m[1][1:], ".") {
		inner, found := schema.Properties[field]
		if !found {
			return fmt.Errorf("%s has no field %s", kind, m[1])
		}
		schema = inner
	}
	return nil
}

// create checks `create secret generic NAME` and `create namespace NAME`.
func (c *commands) create(words []string) error {
	if len(words) == 3 && words[0] == "secret" && words[1] == "generic" {
		for _, text := range c.files {
			if strings.Contains(text, words[2]) {
				return nil
			}
		}
		return fmt.Errorf("no file of the page uses the Secret %s", words[2])
	}
	if len(words) == 2 && words[0] == "namespace" {
		return nil
	}
	return fmt.Errorf("kubectl create %v", words)
}

// eachFile checks that files are of the repository or the page, and have objects only.
func (c *commands) eachFile(names []string) error {
	for _, name := range names {
		texts := []string{c.files[name]}
		if texts[0] == "" {
			files := []string{root + name}
			if info, err := os.Stat(root + name); err == nil && info.IsDir() {
				if files, err = filepath.Glob(root + name + "/*.yaml"); err != nil {
					return err
				}
			}
			texts = nil
			for _, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				texts = append(texts, string(b))
			}
		}
		if len(decode(c.t, strings.Join(texts, "\n"))) < max(1, len(texts)) {
			return fmt.Errorf("%s has no objects", name)
		}
	}
	return nil
}

// eachBase checks that there is a kustomization in directories; TestKustomizeOverlay builds that of the page.
func (c *commands) eachBase(names []string) error {
	for _, name := range names {
		if name == "." && c.files["kustomization.yaml"] != "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root+name, "kustomization.yaml")); err != nil {
			return err
		}
	}
	return nil
}

// drivebay checks that docs/cli.md, which is generated from the program, has a command.
func (c *commands) drivebay(words []string) error {
	for n := len(words); n > 0; n-- {
		if slices.Contains(strings.Split(c.cli, "\n"), "## drivebay "+strings.Join(words[:n], " ")) {
			return nil
		}
	}
	return fmt.Errorf("docs/cli.md has no command drivebay %v", words)
}

// TestKubernetesPage checks each command of docs/kubernetes.md: those of Helm are run against the chart, those of
// kubectl name flags, objects and files that exist.
func TestKubernetesPage(t *testing.T) {
	c := newCommands(t)
	if n := c.page(string(read(t, root+"docs/kubernetes.md"))); n < 12 {
		t.Errorf("%d commands", n)
	}
	for name := range c.files {
		if name != "kustomization.yaml" && name != "values.yaml" && !strings.Contains(string(read(t, root+"docs/kubernetes.md")), "kubectl apply -f "+name) {
			t.Errorf("%s is not applied", name)
		}
	}
}

// TestNotes checks the commands of the notes, and those of the alerts.
func TestNotes(t *testing.T) {
	c := newCommands(t)
	for name, values := range sets {
		count := 0
		for line := range strings.Lines(renderSet(t, values).notes) {
			if command, found := strings.CutPrefix(line, "  kubectl "); found {
				count++
				c.report("kubectl " + strings.TrimSpace(command))
			}
		}
		if count < 3 {
			t.Errorf("%s: %d commands", name, count)
		}
	}
	if n := c.page(string(read(t, root+"docs/alerts.md"))); n < 2 {
		t.Errorf("docs/alerts.md: %d commands", n)
	}
}

// TestCommandsRefuse: commands that would not work are found.
func TestCommandsRefuse(t *testing.T) {
	c := newCommands(t)
	c.files["values.yaml"] = "metrics: {enabled: true}\n"
	c.releases["drivebay"] = map[string]any{}
	for _, row := range [][2]string{
		{"ls", "neither helm nor kubectl"},
		{"kubectl get pods | grep x", "one command"},
		{"kubectl get 'pods", "not closed"},
		{"kubectl get drivess", "no resource drivess"},
		{"kubectl get pods --outputs wide", "no flag --outputs"},
		{"kubectl -n drivebays get pods", "namespace drivebays"},
		{"kubectl rollout status daemonset/drive", "no DaemonSet drive"},
		{"kubectl exec daemonset/drivebay -c main -- drivebay drives", "container main"},
		{"kubectl exec daemonset/drivebay -- drivebay drivez", "no command drivebay"},
		{"kubectl exec daemonset/drivebay drivebay drives", "exec POD -- drivebay"},
		{"kubectl apply -f deploy/manifests/drive.yaml", "no such file"},
		{"kubectl apply -k deploy/chart", "no such file"},
		{"kubectl label namespace drivebay", "label"},
		{"kubectl create secret generic other", "Secret other"},
		{"kubectl scale daemonset/drivebay", "not known"},
		{`kubectl patch drive x --type merge -p '{"spec":{"claims":true}}'`, "no field Drive.spec.claims"},
		{`kubectl patch drive x --type merge -p '{"spec":{"claim":"yes"}}'`, "Drive.spec.claim is a boolean"},
		{`kubectl patch pv PV --type merge --patch '{"spec":{"reclaimPolicy":"Retain"}}'`, "unknown field"},
		{`kubectl patch drive x -p '{"spec":{"claim":true}}'`, "kubectl patch"},
		{"kubectl wait drive x --for=jsonpath='{.status.use}'=RELEASED", "no field .status.use"},
		{"kubectl wait drive x --for=ready", "--for=ready"},
		{"helm install drivebay deploy/chart/drivebay --namespace drivebay", "is installed"},
		{"helm template drivebay deploy/charts/drivebay --namespace drivebay", "chart"},
		{"helm install drivebay deploy/chart/drivebay", "namespace"},
		{"helm install drivebay deploy/chart/drivebay --namespace drivebay --sets a=b", "no flag --sets"},
		{"helm template drivebay deploy/chart/drivebay --namespace drivebay --set images.drivebay.tags=b", "tags"},
		{"helm upgrade drivebay deploy/chart/drivebay --namespace drivebay --values values.yaml", "tlsSecret"},
		{"helm upgrade drivebay deploy/chart/drivebay --namespace drivebay --values other.yaml", "other.yaml"},
		{"helm upgrade drivebay2 deploy/chart/drivebay --namespace drivebay", "not installed"},
		{"helm uninstall drivebay --namespace drivebay --create-namespace", "no flag --create-namespace"},
		{"helm uninstall drive --namespace drivebay", "not installed"},
		{"helm delete drivebay", "helm delete"},
	} {
		if err := c.run(row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: %v", row[0], err)
		}
	}
}
