package csi

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// specField is one field with what csi.proto says of it.
type specField struct {
	message, name, says string
	oneof               bool
}

var (
	opens  = regexp.MustCompile(`^\s*(message|oneof|enum|service) (\w+) *\{`)
	member = regexp.MustCompile(`^\s*(?:repeated )?(?:map<[^>]+>|[\w.]+) (\w+) = \d+`)
)

// readSpec reads csi.proto, whose comments are the contract.
func readSpec(t *testing.T) (fields []specField) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/container-storage-interface/spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "csi.proto"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in []string // messages, from outside
	var says string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		code, comment, is := strings.Cut(line, "//")
		switch m := opens.FindStringSubmatch(line); {
		case is && strings.TrimSpace(code) == "":
			says += comment + " "
			continue
		case m != nil && m[1] == "oneof":
			fields = append(fields, specField{in[len(in)-1], m[2], says, true})
			in = append(in, in[len(in)-1])
		case m != nil && !strings.Contains(line, "}"):
			in = append(in, m[2])
		case strings.HasPrefix(strings.TrimSpace(line), "}") && len(in) > 0:
			in = in[:len(in)-1]
		default:
			if m := member.FindStringSubmatch(line); m != nil && len(in) > 0 {
				fields = append(fields, specField{in[len(in)-1], m[1], says, false})
			}
		}
		says = ""
	}
	return fields
}

// The tables of what is REQUIRED and of what overrides the general size are those
// of csi.proto, for every message that is sent to the services that we have.
func TestFieldsAreTheSpecifications(t *testing.T) {
	inRequests := map[string]bool{"VolumeContentSource": true, "SnapshotSource": true, "VolumeSource": true, "VolumeCapability": true, "AccessMode": true}
	for call := range implemented {
		inRequests[call+"Request"] = true
	}
	wantRequired, wantSizes := map[protoreflect.Name][]protoreflect.Name{}, map[protoreflect.Name]bool{"starting_token": true}
	for _, f := range readSpec(t) {
		must := strings.Contains(f.says, "REQUIRED field") || strings.Contains(f.says, "field is REQUIRED") || f.oneof
		if !inRequests[f.message] {
			continue
		}
		if must && f.name != "readonly" { // false is a value
			wantRequired[protoreflect.Name(f.message)] = append(wantRequired[protoreflect.Name(f.message)], protoreflect.Name(f.name))
		}
		if strings.Contains(f.says, "overrides the general CSI size limit") {
			wantSizes[protoreflect.Name(f.name)] = true
		}
	}
	if len(wantRequired) < 20 {
		t.Fatalf("csi.proto was not understood: %v", wantRequired)
	}
	for m, want := range wantRequired {
		got := slices.Clone(required[m])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s requires %v, want %v", m, got, want)
		}
	}
	if len(required) != len(wantRequired) {
		t.Errorf("%d messages require something, want %d", len(required), len(wantRequired))
	}
	for name := range wantSizes {
		if sizes[name] == 0 {
			t.Errorf("%s overrides the general size", name)
		}
	}
	if len(sizes) != len(wantSizes) {
		t.Errorf("%v override the general size, want %v", sizes, wantSizes)
	}
}
