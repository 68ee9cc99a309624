package api

import (
	"bytes"
	"encoding"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the schemas of docs/api/openapi.yaml anew")

const (
	openapiFile = "../../docs/api/openapi.yaml"
	generated   = "  schemas: # from here on written by: go test ./internal/api -run OpenAPI -update\n"
)

// spoken is every type that crosses the wire at the top of an answer or a body.
var spoken = map[string]any{
	"Snapshot": drivebay.Snapshot{}, "DriveHistory": DriveHistory{}, "RawPage": drivebay.RawPage{},
	"Version": Version{}, "Status": Status{}, "EventList": EventList{}, "BayList": BayList{}, "Refusal": errorBody{}, "Trial": Trial{},
	"Volume": drivebay.Volume{}, "VolumeSet": drivebay.VolumeSet{}, "VolumeDetail": VolumeDetail{}, "SnapshotList": SnapshotList{}, "Capacity": Capacity{}, "VolumeRoom": drivebay.VolumeRoom{},
	"VolumeRequest": VolumeBody{}, "ExpandRequest": expandBody{}, "SnapshotRequest": snapshotBody{},
	"HealRequest": HealBody{}, "HealReport": drivebay.HealReport{},
	"ReplicationRequest": ReplicationBody{}, "ReplicationCall": ReplicationCallBody{}, "Resynced": Resynced{}, "ReplicatedVolume": ReplicatedVolume{}, "ReplicationList": ReplicationList{},
	"SelfTestRequest": selfTestBody{}, "AcknowledgeRequest": acknowledgeBody{}, "SwitchRequest": switchBody{}, "LeaveRequest": leaveBody{},
}

// schemas turns types into JSON schemas, with the comments of the fields as
// descriptions.
type schemas struct {
	out      map[string]map[string]any
	comments map[string]string // "Type.Field"
}

func (s *schemas) of(t reflect.Type) map[string]any {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer", "description": "nanoseconds"}
	case t == reflect.TypeFor[netip.AddrPort]():
		return map[string]any{"type": "string"}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case t.Implements(text):
		return map[string]any{"type": "string", "enum": words(t)}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		return s.ref(plainName(t), t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Uint8:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": 255}
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "format": t.Kind().String(), "minimum": 0}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

func (s *schemas) ref(name string, t reflect.Type) map[string]any {
	if _, known := s.out[name]; !known {
		s.out[name] = map[string]any{}
		properties, required := map[string]any{}, []string{}
		s.fields(t, properties, &required)
		s.out[name] = map[string]any{"type": "object", "properties": properties}
		if len(required) > 0 {
			slices.Sort(required)
			s.out[name]["required"] = required
		}
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// plainName is the name of a type, of a generic one with that of its parameter:
// FailureCSIStatus.
func plainName(t reflect.Type) string {
	name, parameter, _ := strings.Cut(strings.TrimSuffix(t.Name(), "]"), "[")
	return name + parameter[strings.LastIndex(parameter, ".")+1:]
}

func genericName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

func (s *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.fields(f.Type, properties, required)
			continue
		}
		if name == "-" {
			continue
		}
		schema := s.of(f.Type)
		optional := strings.Contains(options, "omit")
		if kind := f.Type.Kind(); !optional && (kind == reflect.Slice || kind == reflect.Pointer) && schema["type"] != nil {
			schema["type"] = []string{schema["type"].(string), "null"}
		}
		if c := s.comments[genericName(t)+"."+f.Name]; c != "" && schema["description"] == nil {
			schema["description"] = c
		}
		properties[name] = schema
		if !optional {
			*required = append(*required, name)
		}
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// words lists the texts of an enum: its values until one has no name.
func words(t reflect.Type) (out []string) {
	for i := range uint64(255) {
		v := reflect.New(t).Elem()
		v.SetUint(i)
		w := v.Interface().(fmt.Stringer).String()
		if strings.HasSuffix(w, fmt.Sprintf("(%d)", i)) {
			break
		}
		out = append(out, w)
	}
	return out
}

// comments reads what the source says of each field.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	own, err2 := filepath.Glob("*.go")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	out := map[string]string{}
	for _, name := range append(files, own...) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
					for _, name := range f.Names {
						out[spec.Name.Name+"."+name.Name] = text
					}
				}
			}
			return true
		})
	}
	return out
}

func fromTypes(t *testing.T) map[string]map[string]any {
	t.Helper()
	s := schemas{out: map[string]map[string]any{}, comments: comments(t)}
	for name, v := range spoken {
		s.ref(name, reflect.TypeOf(v))
	}
	return s.out
}

// document is the part of an OpenAPI file that is checked.
type document struct {
	Paths      map[string]map[string]operation `yaml:"paths"`
	Components struct {
		Parameters map[string]map[string]any `yaml:"parameters"`
		Responses  map[string]map[string]any `yaml:"responses"`
		Schemas    map[string]map[string]any `yaml:"schemas"`
	} `yaml:"components"`
}

type operation struct {
	ID         string         `yaml:"operationId"`
	Summary    string         `yaml:"summary"`
	Privileged bool           `yaml:"x-privileged"`
	Body       map[string]any `yaml:"requestBody"`
	Responses  map[string]any `yaml:"responses"`
	Parameters []struct {
		Ref string `yaml:"$ref"`
	} `yaml:"parameters"`
}

func readDocument(t *testing.T) (raw []byte, doc document) {
	t.Helper()
	raw, err := os.ReadFile(openapiFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return raw, doc
}

// bare is a schema without its prose, as YAML would read it back.
func bare(t *testing.T, schema any) any {
	t.Helper()
	b, err := yaml.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := yaml.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return withoutProse(out)
}

func withoutProse(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, prose := v["description"].(string); prose {
			delete(v, "description")
		}
		for k := range v {
			v[k] = withoutProse(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutProse(v[i])
		}
	}
	return v
}

func TestOpenAPISchemas(t *testing.T) {
	want := fromTypes(t)
	raw, doc := readDocument(t)
	if *update {
		head, _, ok := bytes.Cut(raw, []byte(generated))
		if !ok {
			t.Fatalf("%s has lost the line %q", openapiFile, generated)
		}
		var body bytes.Buffer
		enc := yaml.NewEncoder(&body)
		enc.SetIndent(2)
		if err := enc.Encode(map[string]any{"x": map[string]any{"x": want}}); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := bytes.Cut(body.Bytes(), []byte("  x:\n"))
		if err := os.WriteFile(openapiFile, slices.Concat(head, []byte(generated), rest), 0o644); err != nil {
			t.Fatal(err)
		}
		_, doc = readDocument(t)
	}
	for name, schema := range want {
		if got := bare(t, doc.Components.Schemas[name]); !reflect.DeepEqual(got, bare(t, schema)) {
			t.Errorf("schema %s is not the Go type any more (go test ./internal/api -run OpenAPI -update):\n%v\n%v", name, got, bare(t, schema))
		}
	}
	for name := range doc.Components.Schemas {
		if want[name] == nil {
			t.Errorf("schema %s is no type that is served", name)
		}
	}
}

func TestOpenAPIPaths(t *testing.T) {
	_, doc := readDocument(t)
	described, ids := map[string]operation{}, map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			described[strings.ToUpper(method)+" "+path] = op
			if op.ID == "" || ids[op.ID] || op.Summary == "" || op.Responses["default"] == nil || len(op.Responses) < 2 {
				t.Errorf("%s %s: operation %+v is not complete", method, path, op)
			}
			ids[op.ID] = true
		}
	}
	for _, r := range routes {
		name := r.method + " " + r.path
		op, ok := described[name]
		if !ok {
			t.Errorf("%s is served and not described", name)
			continue
		}
		delete(described, name)
		if op.Privileged != r.privileged {
			t.Errorf("%s: x-privileged is %v", name, op.Privileged)
		}
		var in []string
		for _, p := range op.Parameters {
			parameter := doc.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
			if parameter["in"] == "path" {
				in = append(in, fmt.Sprintf("{%v}", parameter["name"]))
			}
		}
		for _, part := range strings.Split(r.path, "/") {
			if strings.HasPrefix(part, "{") && !slices.Contains(in, part) {
				t.Errorf("%s: parameter %s is not described", name, part)
			}
		}
	}
	for name := range described {
		t.Errorf("%s is described and not served", name)
	}
}

// TestOpenAPIReferences follows every $ref of the file.
func TestOpenAPIReferences(t *testing.T) {
	raw, doc := readDocument(t)
	n := 0
	for part := range strings.SplitSeq(string(raw), "$ref: ") {
		ref, _, _ := strings.Cut(strings.TrimLeft(part, "'\""), "\n")
		ref, ok := strings.CutPrefix(strings.TrimRight(ref, "'\"}"), "#/components/")
		if !ok {
			continue
		}
		n++
		kind, name, _ := strings.Cut(ref, "/")
		if map[string]map[string]map[string]any{"schemas": doc.Components.Schemas, "parameters": doc.Components.Parameters, "responses": doc.Components.Responses}[kind][name] == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	if n < 50 {
		t.Errorf("only %d references were found", n)
	}
}
