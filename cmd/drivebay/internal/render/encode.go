package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// JSON returns a value as the API sends it, indented.
func JSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return b.String(), nil
}

// YAML returns a value with the keys that JSON gives it, in the same order.
func YAML(v any) (string, error) {
	text, err := JSON(v)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	root, err := tree(dec)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return b.String(), nil
}

// tree reads one JSON value as a YAML tree. It reads tokens: a map loses the order of
// the keys.
func tree(dec *json.Decoder) (*yaml.Node, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := tok.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v == '[' {
			n.Kind = yaml.SequenceNode
		}
		for dec.More() {
			child, err := tree(dec) // in an object, keys and values alternate
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := dec.Token() // the bracket that closes it
		return n, err
	case string:
		n := new(yaml.Node)
		n.SetString(v)
		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	}
	n := new(yaml.Node)
	return n, n.Encode(tok) // true, false, null
}
