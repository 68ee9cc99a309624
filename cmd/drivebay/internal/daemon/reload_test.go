package daemon

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/config"
)

// TestUnfinished: a file that is gone since the last load may be half written; where none was read before, none is missing.
func TestUnfinished(t *testing.T) {
	for _, c := range []struct {
		loaded config.Loaded
		before string
		want   string
	}{
		{config.Loaded{}, "", ""},
		{config.Loaded{}, "/etc/c.yaml", "does not exist"},
		{config.Loaded{File: "/etc/c.yaml"}, "/etc/c.yaml", ""},
		{config.Loaded{File: "/etc/c.yaml", Unfinished: "no end"}, "", "no end"},
	} {
		if is := unfinished(c.loaded, c.before); !strings.Contains(is, c.want) || c.want == "" && is != "" {
			t.Errorf("%+v after %q: %q, want %q", c.loaded, c.before, is, c.want)
		}
	}
}
