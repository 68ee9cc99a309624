package jsonpath

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// path leads from the document, or from the element of a block, to values.
type path struct {
	fromRoot bool
	steps    []step
}

// step leads from one value to others.
type step func(doc, v any) []any

func (p *path) values(doc, at any) []any {
	if p.fromRoot {
		at = doc
	}
	values := []any{at}
	for _, s := range p.steps {
		var next []any
		for _, v := range values {
			next = append(next, s(doc, v)...)
		}
		values = next
	}
	return values
}

// parsePath parses a path: "$" or "@", then keys and brackets.
func parsePath(text string) (*path, error) {
	p := &path{}
	rest := text
	switch {
	case rest == "":
		return nil, fmt.Errorf("{}: a path is missing, such as {.drives[*].id}")
	case rest[0] == '$':
		p.fromRoot, rest = true, rest[1:]
	case rest[0] == '@':
		rest = rest[1:]
	case rest[0] != '.' && rest[0] != '[':
		return nil, fmt.Errorf("{%s}: a path begins with a dot, such as {.drives[*].id}", text)
	}
	for rest != "" {
		s, after, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("{%s}: %w", text, err)
		}
		p.steps, rest = append(p.steps, s), after
	}
	return p, nil
}

func parseStep(text string) (step, string, error) {
	switch {
	case strings.HasPrefix(text, ".."):
		name, rest := key(text[2:])
		if name == "" {
			return nil, "", fmt.Errorf("%q: a key is missing after the dots", text)
		}
		return func(_, v any) []any { return everywhere(v, name) }, rest, nil
	case text == ".": // {.} is the element itself
		return func(_, v any) []any { return []any{v} }, "", nil
	case strings.HasPrefix(text, ".["):
		return parseStep(text[1:])
	case text[0] == '.':
		name, rest := key(text[1:])
		if name == "" {
			return nil, "", fmt.Errorf("%q: a key is missing after the dot", text)
		}
		return func(_, v any) []any { return child(v, name) }, rest, nil
	case text[0] == '[':
		inner, rest, err := bracket(text[1:])
		if err != nil {
			return nil, "", err
		}
		s, err := parseBracket(inner)
		return s, rest, err
	}
	return nil, "", fmt.Errorf("%q: want a dot or a bracket", text)
}

// key returns the key that a text begins with. A backslash takes the next character as it is.
func key(text string) (name, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '.' || c == '[':
			return b.String(), text[i:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// bracket returns what is in a bracket, and the text behind it. Brackets may contain others, and
// those in quotes do not count.
func bracket(text string) (inner, rest string, err error) {
	depth, quote := 1, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return strings.TrimSpace(text[:i]), text[i+1:], nil
			}
		}
	}
	return "", "", fmt.Errorf("[%s: the closing bracket is missing", text)
}

func parseBracket(inner string) (step, error) {
	switch {
	case inner == "*":
		return func(_, v any) []any { return child(v, "*") }, nil
	case strings.HasPrefix(inner, "?(") && strings.HasSuffix(inner, ")"):
		return parseFilter(strings.TrimSpace(inner[2 : len(inner)-1]))
	case inner != "" && (inner[0] == '\'' || inner[0] == '"'):
		if name, err := unquote(inner); err == nil {
			return func(_, v any) []any { return member(v, name) }, nil
		}
	case strings.Contains(inner, ":"):
		if s, ok := parseSlice(inner); ok {
			return s, nil
		}
	default:
		if i, err := strconv.Atoi(inner); err == nil {
			return func(_, v any) []any { return element(v, i) }, nil
		}
	}
	return nil, fmt.Errorf("[%s]: not supported: want [0], [-1], [1:3], [*], ['key'] or [?(@.key==\"value\")]", inner)
}

// parseSlice parses "from:to"; either may be missing, and negative ones count from the end.
func parseSlice(inner string) (step, bool) {
	first, last, _ := strings.Cut(inner, ":")
	bound := func(text string) (n int, given, ok bool) {
		if text == "" {
			return 0, false, true
		}
		n, err := strconv.Atoi(text)
		return n, true, err == nil
	}
	from, _, ok1 := bound(first)
	to, limited, ok2 := bound(last)
	return func(_, v any) []any {
		list, ok := v.([]any)
		if !ok {
			return nil
		}
		place := func(n int) int {
			if n < 0 {
				n += len(list)
			}
			return min(max(n, 0), len(list))
		}
		end := len(list)
		if limited {
			end = place(to)
		}
		return list[place(from):max(end, place(from))]
	}, ok1 && ok2
}

func member(v any, name string) []any {
	if m, ok := v.(map[string]any); ok {
		if is, ok := m[name]; ok {
			return []any{is}
		}
	}
	return nil
}

// child returns the value of a key, or all values for "*".
func child(v any, name string) []any {
	if name != "*" {
		return member(v, name)
	}
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		var out []any
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, v[k])
		}
		return out
	}
	return nil
}

func element(v any, i int) []any {
	list, ok := v.([]any)
	if i < 0 {
		i += len(list)
	}
	if !ok || i < 0 || i >= len(list) {
		return nil
	}
	return list[i : i+1]
}

// everywhere returns the values of a key in a value and in all values below it.
func everywhere(v any, name string) []any {
	out := slices.Clone(child(v, name))
	for _, below := range child(v, "*") {
		out = append(out, everywhere(below, name)...)
	}
	return out
}

// comparisons are the operators of a filter; a longer one is before its prefix.
var comparisons = []string{"==", "!=", "<=", ">=", "<", ">"}

// parseFilter parses "@.key", or "@.key OPERATOR VALUE" with a text in quotes, a number, true, false
// or another path.
func parseFilter(text string) (step, error) {
	for _, word := range []string{"&&", "||", "=~"} {
		if strings.Contains(text, word) {
			return nil, fmt.Errorf("[?(%s)]: %s is not supported: use one comparison", text, word)
		}
	}
	at, op := len(text), ""
	for _, o := range comparisons {
		if i := strings.Index(text, o); i >= 0 && i < at {
			at, op = i, o
		}
	}
	left, err := operand(strings.TrimSpace(text[:at]))
	if err != nil {
		return nil, fmt.Errorf("[?(%s)]: %w", text, err)
	}
	right := func(_, _ any) []any { return nil }
	if op != "" {
		if right, err = operand(strings.TrimSpace(text[at+len(op):])); err != nil {
			return nil, fmt.Errorf("[?(%s)]: %w", text, err)
		}
	}
	return func(doc, v any) (out []any) {
		for _, one := range child(v, "*") {
			a, b := left(doc, one), right(doc, one)
			if op == "" && len(a) > 0 || op != "" && len(a) > 0 && len(b) > 0 && compare(a[0], b[0], op) {
				out = append(out, one)
			}
		}
		return out
	}, nil
}

// operand parses one side of a comparison.
func operand(text string) (step, error) {
	if text != "" && (text[0] == '@' || text[0] == '$') {
		p, err := parsePath(text)
		if err != nil {
			return nil, err
		}
		return p.values, nil
	}
	var value any = json.Number(text)
	switch _, err := strconv.ParseFloat(text, 64); {
	case text == "true" || text == "false":
		value = text == "true"
	case err == nil:
	default:
		s, err := unquote(text)
		if err != nil {
			return nil, fmt.Errorf("%q: want @.key, a number, true, false, or a text in quotes", text)
		}
		value = s
	}
	return func(_, _ any) []any { return []any{value} }, nil
}

// compare compares two numbers as numbers, and other values as texts.
func compare(a, b any, op string) bool {
	order := 0
	if x, y, ok := numbers(a, b); ok {
		order = cmp.Compare(x, y)
	} else {
		order = strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}
	switch op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func numbers(a, b any) (x, y float64, ok bool) {
	m, ok1 := a.(json.Number)
	n, ok2 := b.(json.Number)
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	x, err1 := m.Float64()
	y, err2 := n.Float64()
	return x, y, err1 == nil && err2 == nil
}
