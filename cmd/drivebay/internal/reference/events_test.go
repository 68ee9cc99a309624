package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/drivebay/drivebay/internal/kube/events"
)

// Every kind of event is explained, once.
func TestEveryEventIsExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../snapshot.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]int{}
	for _, e := range eventWords {
		explained[`"`+string(e.kind)+`"`]++
		if e.means == "" {
			t.Errorf("%s is explained with nothing", e.kind)
		}
		if _, known := events.RowOf(e.kind); !known {
			t.Errorf("whether %s is shown in Kubernetes is not decided", e.kind)
		}
	}
	kinds := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "EventKind" {
			kinds++
			if word := spec.Values[0].(*ast.BasicLit).Value; explained[word] != 1 {
				t.Errorf("%s is explained %d times", word, explained[word])
			}
		}
		return true
	})
	if kinds != len(eventWords) || kinds == 0 {
		t.Errorf("%d kinds are there, %d are explained", kinds, len(eventWords))
	}
}
