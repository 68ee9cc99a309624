// Package jsonpath prints parts of a JSON document by a template, as `kubectl -o jsonpath` does
// (https://kubernetes.io/docs/reference/kubectl/jsonpath/). It knows:
//
//	{.drives[0].id}            keys, indexes (negative ones count from the end), slices [1:3]
//	{.drives[*].id}            every element; {.*} and {..id} every key, {['a.b']} and {.a\.b} odd keys
//	{.drives[?(@.health=="BAD")].id}   elements with a field, or with one that compares == != < <= > >=
//	{range .drives[*]}{.id}{"\n"}{end} a block for each element; {@} is the element, {$} the document
//
// It refuses everything else with an error that names it: unions, && and ||, functions, arithmetic.
package jsonpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Template is a parsed template.
type Template struct{ nodes []node }

// node is a part of a template: a text, a path, or a block that is repeated for each value of a path.
type node struct {
	text  string
	path  *path
	block []node
	loop  bool
}

// Parse parses a template. One without braces is a path.
func Parse(text string) (*Template, error) {
	if !strings.Contains(text, "{") {
		text = "{" + text + "}"
	}
	p := parser{rest: text}
	nodes, err := p.nodes(false)
	if err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", text, err)
	}
	return &Template{nodes}, nil
}

type parser struct{ rest string }

// nodes parses up to the end of the text, or of a block.
func (p *parser) nodes(inBlock bool) (out []node, err error) {
	for p.rest != "" {
		text, rest, found := strings.Cut(p.rest, "{")
		if text != "" {
			out = append(out, node{text: text})
		}
		if !found {
			p.rest = ""
			break
		}
		inner, rest, err := action(rest)
		if err != nil {
			return nil, err
		}
		p.rest = rest
		if inner == "end" {
			if !inBlock {
				return nil, fmt.Errorf("{end} without {range}")
			}
			return out, nil
		}
		n, err := p.node(inner)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	if inBlock {
		return nil, fmt.Errorf("{range} without {end}")
	}
	return out, nil
}

// action returns what is between braces, and the text behind them. Braces in quotes do not count.
func action(text string) (inner, rest string, err error) {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '}':
			return strings.TrimSpace(text[:i]), text[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("{%s: the closing brace is missing", text)
}

func (p *parser) node(inner string) (node, error) {
	if inner != "" && (inner[0] == '"' || inner[0] == '\'') {
		text, err := unquote(inner)
		return node{text: text}, err
	}
	over, loop := strings.CutPrefix(inner, "range ")
	at, err := parsePath(strings.TrimSpace(over))
	if err != nil || !loop {
		return node{path: at}, err
	}
	block, err := p.nodes(true)
	return node{path: at, block: block, loop: true}, err
}

// unquote returns the text of a literal in quotes, with the escapes of Go.
func unquote(text string) (string, error) {
	double := text
	if len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'' {
		inner := strings.ReplaceAll(text[1:len(text)-1], `\'`, "\x00")
		if strings.Contains(inner, "'") {
			return "", fmt.Errorf("%s: not a text in quotes", text)
		}
		double = `"` + strings.ReplaceAll(strings.ReplaceAll(inner, "\x00", "'"), `"`, `\"`) + `"`
	}
	out, err := strconv.Unquote(double)
	if err != nil {
		return "", fmt.Errorf("%s: not a text in quotes", text)
	}
	return out, nil
}

// Print prints a value, which encoding/json can encode, by the template.
func (t *Template) Print(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return "", err
	}
	var out strings.Builder
	if err := print(&out, t.nodes, doc, doc); err != nil {
		return "", err
	}
	return out.String(), nil
}

func print(out *strings.Builder, nodes []node, doc, at any) error {
	for _, n := range nodes {
		if n.path == nil {
			out.WriteString(n.text)
			continue
		}
		values := n.path.values(doc, at)
		for i, v := range values {
			if n.loop {
				if err := print(out, n.block, doc, v); err != nil {
					return err
				}
				continue
			}
			if i > 0 {
				out.WriteString(" ")
			}
			text, err := textOf(v)
			if err != nil {
				return err
			}
			out.WriteString(text)
		}
	}
	return nil
}

// textOf returns a text as it is, and other values as JSON.
func textOf(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
