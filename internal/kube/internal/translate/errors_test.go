package translate

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// dictionary has the errors of errors.go in the root package, by name.
var dictionary = map[string]error{
	"ErrNotFound": drivebay.ErrNotFound, "ErrAmbiguous": drivebay.ErrAmbiguous, "ErrInvalid": drivebay.ErrInvalid, "ErrBusy": drivebay.ErrBusy,
	"ErrPending": drivebay.ErrPending, "ErrExists": drivebay.ErrExists, "ErrNoSpace": drivebay.ErrNoSpace, "ErrRange": drivebay.ErrRange,
	"ErrNoSupport": drivebay.ErrNoSupport, "ErrPermission": drivebay.ErrPermission, "ErrRefused": drivebay.ErrRefused, "ErrSecret": drivebay.ErrSecret,
	"ErrTimeout": drivebay.ErrTimeout, "ErrUnavailable": drivebay.ErrUnavailable,
}

// TestErrors: every error of the dictionary passes through a status and comes back as the same error with the
// same text.
func TestErrors(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for name := range file.Scope.Objects {
		if !strings.HasPrefix(name, "Err") || file.Scope.Objects[name].Kind != ast.Var {
			continue
		}
		named++
		kind, ok := dictionary[name]
		if !ok {
			t.Errorf("%s has no code", name)
			continue
		}
		in := fmt.Errorf("volume data-1: %w: for a reason", kind)
		out := Error(ErrorOf(in))
		if !errors.Is(out, kind) || out.Error() != in.Error() {
			t.Errorf("%s comes back as %v", name, out)
		}
		for other, e := range dictionary {
			if other != name && errors.Is(out, e) {
				t.Errorf("%s comes back as %s as well", name, other)
			}
		}
	}
	if named != len(dictionary) {
		t.Errorf("errors.go has %d errors, the test %d", named, len(dictionary))
	}
	if ErrorOf(nil) != nil || Error(nil) != nil {
		t.Error("no error becomes one")
	}
}

// TestErrorPrecedence: an error that matches several has the code that CSI gives it on a node.
func TestErrorPrecedence(t *testing.T) {
	for _, c := range []struct {
		err       error
		code      string
		transient bool
	}{
		{errors.Join(drivebay.ErrNotFound, drivebay.ErrUnavailable), "Unavailable", true},
		{fmt.Errorf("write: %w", io.ErrUnexpectedEOF), "Internal", true},
		{context.DeadlineExceeded, "Timeout", true},
		{context.Canceled, "Unavailable", true},
		{drivebay.ErrPending, "Pending", true},
		{drivebay.ErrBusy, "Busy", false},
		{drivebay.ErrNoSpace, "NoSpace", false},
		{drivebay.ErrRefused, "Refused", false},
	} {
		e := ErrorOf(c.err)
		if e.Code != c.code || Transient(e) != c.transient {
			t.Errorf("%v: %s, transient %v", c.err, e.Code, Transient(e))
		}
	}
	if e := ErrorOf(errors.New(strings.Repeat("ä", maxMessage))); len(e.Message) > maxMessage {
		t.Errorf("the message has %d bytes", len(e.Message))
	}
}

// TestCodesInSchema: the schema of the objects has every code.
func TestCodesInSchema(t *testing.T) {
	text, err := os.ReadFile("../../../../api/v1alpha1/volume.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "Enum=NotFound;")
	line, _, _ := strings.Cut(after, "\n")
	inSchema := append(strings.Split(line, ";"), "NotFound")
	want := []string{codeInternal}
	for _, c := range codes {
		want = append(want, c.code)
	}
	slices.Sort(inSchema)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(inSchema, want) {
		t.Errorf("the schema has %v, want %v", inSchema, want)
	}
}
