package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file merges a YAML file into the configuration. It walks the tree itself: the strict mode of the
// library suggests no similar key, and keeps no line numbers for the later checks.
func (l *loader) file(name string, data []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		l.unfinished = name + " has no keys"
		return // only comments: all defaults
	}
	if err != nil {
		l.fail(name, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.fail(name, "contains more than one YAML document")
	}
	switch {
	case isNull(doc.Content[0]):
		l.unfinished = name + " has no keys"
	case !bytes.HasSuffix(data, []byte("\n")):
		l.unfinished = "the last line of " + name + " has no end"
	}
	l.section(name, "", doc.Content[0])
}

// section reads one mapping; prefix is the path of the section with a trailing dot.
func (l *loader) section(name, prefix string, node *yaml.Node) {
	where := fmt.Sprintf("%s:%d", name, node.Line)
	if isNull(node) {
		return // "log:" with nothing below it
	}
	if node.Kind != yaml.MappingNode {
		l.fail(where, "%s must contain keys, not %s", sectionName(prefix), kindOf(node))
		return
	}
	known := l.keys(prefix)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		where := fmt.Sprintf("%s:%d", name, key.Line)
		if line, twice := seen[key.Value]; twice {
			l.fail(where, "%s%s is already set in line %d", prefix, key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		f, ok := known[key.Value]
		if !ok {
			l.fail(where, "unknown key %q%s", prefix+key.Value, l.hint(prefix, key.Value))
			continue
		}
		if f.Section {
			l.section(name, f.Path+".", value)
			continue
		}
		l.value(f, where, value)
	}
}

// value reads one value, a scalar or a list of scalars.
func (l *loader) value(f Field, where string, node *yaml.Node) {
	switch {
	case isNull(node):
		l.failKey(f.Path, where, errors.New("has no value: remove the key to use the default"))
	case node.Kind == yaml.ScalarNode:
		l.set(f, where, node.Value)
	case node.Kind == yaml.SequenceNode && f.list():
		texts := make([]string, len(node.Content))
		for i, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				l.failKey(f.Path, where, fmt.Errorf("must be a list of plain values, not of %s", kindOf(item)))
				return
			}
			texts[i] = item.Value
		}
		l.origin[f.Path] = where
		if err := setList(f.value, texts); err != nil {
			l.failKey(f.Path, where, err)
		}
	default:
		l.failKey(f.Path, where, fmt.Errorf("must be one value, not %s", kindOf(node)))
	}
}

// keys returns the fields directly inside a section, by key.
func (l *loader) keys(prefix string) map[string]Field {
	keys := map[string]Field{}
	for _, f := range l.fields {
		if rest, ok := strings.CutPrefix(f.Path, prefix); ok && !strings.Contains(rest, ".") {
			keys[rest] = f
		}
	}
	return keys
}

// hint suggests a similar key of this section, or else the key of that name in another section.
func (l *loader) hint(prefix, key string) string {
	var here []string
	for k := range l.keys(prefix) {
		here = append(here, k)
	}
	if near, ok := Nearest(key, here); ok {
		return fmt.Sprintf(": did you mean %q?", prefix+near)
	}
	for _, f := range l.fields {
		if strings.EqualFold(f.Key(), key) {
			return fmt.Sprintf(": did you mean %q?", f.Path)
		}
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func sectionName(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return strings.TrimSuffix(prefix, ".")
}

var kinds = map[yaml.Kind]string{yaml.MappingNode: "keys", yaml.SequenceNode: "a list", yaml.ScalarNode: "a plain value", yaml.AliasNode: "an alias"}

func kindOf(n *yaml.Node) string { return kinds[n.Kind] }
