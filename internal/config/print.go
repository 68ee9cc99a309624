package config

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// docWidth is the width of the comments in a printed file.
const docWidth = 100

// Example writes examples/drivebay.yaml: the defaults with their documentation.
func Example(w io.Writer) error {
	const head = "# The configuration of drivebay serve. Every key has its default value: an empty\n" +
		"# file means the same. The daemon refuses a file with unknown keys.\n\n"
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	return Print(w, Default())
}

// Print writes a configuration as a file with the meaning above each key. Reading the file gives
// the same configuration.
func Print(w io.Writer, c Config) error {
	out := bufio.NewWriter(w)
	for i, f := range c.Fields() {
		indent := strings.Repeat("  ", strings.Count(f.Path, "."))
		if i > 0 && (indent == "" || f.Section) {
			fmt.Fprintln(out)
		}
		for _, line := range wrap(f.Doc, docWidth-len(indent)) {
			fmt.Fprintf(out, "%s# %s\n", indent, line)
		}
		if f.Section {
			fmt.Fprintf(out, "%s%s:\n", indent, f.Key())
			continue
		}
		text, err := f.yaml()
		if err != nil {
			return fmt.Errorf("print %s: %w", f.Path, err)
		}
		fmt.Fprintf(out, "%s%s: %s\n", indent, f.Key(), text)
	}
	return out.Flush()
}

// yaml returns the value in YAML. A value that is not a number, a boolean or a list is a string,
// quoted where needed.
func (f Field) yaml() (string, error) {
	switch {
	case f.list():
		return f.yamlList()
	case f.value.Type() != durationType && (f.Bool || f.value.CanInt() || f.value.CanUint() || f.value.CanFloat()) && !isText(f.value):
		return f.Text(), nil
	}
	b, err := yaml.Marshal(f.Text())
	return strings.TrimSpace(string(b)), err
}

// yamlList returns a list in one line, with quotes around the items that need them.
func (f Field) yamlList() (string, error) {
	list := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for i := range f.value.Len() {
		item := yaml.Node{}
		item.SetString(getText(f.value.Index(i)))
		list.Content = append(list.Content, &item)
	}
	b, err := yaml.Marshal(&list)
	return strings.TrimSpace(string(b)), err
}

func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error })
	return ok
}

// wrap breaks a text at spaces into lines of at most width bytes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
