package drivebay

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unclear matches words and phrases that hide who does what to which thing. CONTRIBUTING.md
// has the rules of style behind it.
var unclear = regexp.MustCompile(`(?i)\b(` +
	`nobody|somebody|whoever|anybody|everybody|(is|are|was|were|be) told|who has it|` +
	`there is none|is none that|is nobody's|lets (it )?be|lets? go of|stands? against|(is|are) waited|(is|are) said (of|to)|asked for is|` +
	`herds?|twins?|adrift|anew|is no (text|number|disk|address|socket|path|list|folder|window|duration)|` +
	`(reads?|writes?|work|daemon|kernel|drive|volume|pvmove|it) goe?s? on)\b|[a-z] strides?\b`)

// TestLanguage: the comments and texts of the product, and its documentation, have none of
// these words. Tests and the tools in hack are not read.
func TestLanguage(t *testing.T) {
	read := 0
	check := func(where, text string) {
		read++
		if found := unclear.FindString(text); found != "" {
			t.Errorf("%s: %q is unclear: name the thing and what it does", where, found)
		}
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := e.Name(); {
		case e.IsDir() && (name == "testdata" || name == "hack" || name == "bin" || path != "." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".yaml"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			check(path, string(text))
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return texts(path, check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 1000 {
		t.Errorf("only %d texts were read", read)
	}
}

// texts calls check with each comment and each string of a Go file.
func texts(path string, check func(where, text string)) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, c := range f.Comments {
		check(files.Position(c.Pos()).String(), c.Text())
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			check(files.Position(lit.Pos()).String(), lit.Value)
		}
		return true
	})
	return nil
}

var (
	docLink  = regexp.MustCompile(`\[([^\]]*)\]\(([^)#\s]+)`)
	testName = regexp.MustCompile(`\bTest\w+`)
	codePath = regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.go)`")
)

// TestDocLinks: what the documentation links to is there, files of the code by name too, and a link
// to a test names one that is in that file.
func TestDocLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range codePath.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(path[1]); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		for _, link := range docLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[2], "://") {
				continue
			}
			links++
			file := filepath.Join(filepath.Dir(page), link[2])
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if !strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range testName.FindAllString(link[1], -1) {
				if !strings.Contains(string(code), "func "+name+"(") {
					t.Errorf("%s: %s is not in %s", page, name, file)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}
