package config

import (
	"encoding"
	"reflect"
	"strings"
	"unicode"
)

// Field is one key of the configuration that holds a value, or a section.
type Field struct {
	Path    string // "log.level"
	Env     string // "DRIVEBAY_LOG_LEVEL"
	Flag    string // "log-level"; empty: no flag
	Doc     string
	Live    bool // takes effect on SIGHUP
	Section bool
	Bool    bool

	oneof, min, max string
	value           reflect.Value
}

// Key returns the last part of the path.
func (f Field) Key() string { return f.Path[strings.LastIndex(f.Path, ".")+1:] }

// Text returns the value as it is written in the file.
func (f Field) Text() string { return getText(f.value) }

// Fields returns every key in the order of the file; a section precedes its keys. Setting a field
// changes c.
func (c *Config) Fields() []Field {
	return appendFields(nil, reflect.ValueOf(c).Elem(), "", false)
}

func appendFields(list []Field, v reflect.Value, prefix string, live bool) []Field {
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		path := prefix + sf.Tag.Get("yaml")
		f := Field{
			Path: path, Env: envOf(path), Flag: sf.Tag.Get("flag"), Doc: sf.Tag.Get("doc"),
			Live:  live || sf.Tag.Get("live") != "",
			oneof: sf.Tag.Get("oneof"), min: sf.Tag.Get("min"), max: sf.Tag.Get("max"),
			value: v.Field(i), Bool: sf.Type.Kind() == reflect.Bool,
		}
		f.Section = isSection(f.value)
		list = append(list, f)
		if f.Section {
			list = appendFields(list, f.value, path+".", f.Live)
		}
	}
	return list
}

func isSection(v reflect.Value) bool {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return false
	}
	return v.Kind() == reflect.Struct
}

// envOf converts "selfTests.maxConcurrent" to DRIVEBAY_SELF_TESTS_MAX_CONCURRENT.
func envOf(path string) string {
	var b strings.Builder
	b.WriteString("DRIVEBAY_")
	before := '_'
	for _, r := range path {
		switch {
		case r == '.':
			r = '_'
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
		before = r
	}
	return b.String()
}
