package volume

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/volume/internal/env"
)

// TestWired: no part of the engine is without one that it knows, and all know the same ones.
func TestWired(t *testing.T) {
	e := newEngine()
	e.wire(&env.Env{})
	parts := map[reflect.Type]uintptr{}
	each := func(of reflect.Value, f func(name string, part reflect.Value)) {
		for i := range of.NumField() {
			if t := of.Field(i).Type(); t.Kind() == reflect.Pointer && strings.Contains(t.Elem().PkgPath(), "/volume/internal/") && t.Elem().Kind() == reflect.Struct {
				f(of.Type().Field(i).Name, of.Field(i))
			}
		}
	}
	engine := reflect.ValueOf(e.parts).Elem()
	each(engine, func(_ string, part reflect.Value) { parts[part.Type()] = part.Pointer() })
	n := 0
	each(engine, func(name string, part reflect.Value) {
		each(part.Elem(), func(field string, knows reflect.Value) {
			want, room := parts[knows.Type()]
			if !room {
				return
			}
			if n++; knows.Pointer() != want {
				t.Errorf("%s does not have the %s of the engine", name, field)
			}
		})
	})
	if n < 100 {
		t.Errorf("only %d connections were found", n)
	}
}
