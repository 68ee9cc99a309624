package device

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOneGate: of the engine's files only writable.go opens a device, and no file compares the fields of a
// record that a method of the record interprets.
func TestOneGate(t *testing.T) {
	fields := regexp.MustCompile(`\.LUKSUUID [!=]= ""|\.VG [!=]= ""|[vV](olume)?\.Mode [!=]= drivebay\.ModeFS`)
	opens := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), ".OpenDisk("); n > 0 {
			if opens += n; !strings.HasSuffix(name, "internal/device/writable.go") {
				t.Errorf("%s opens a device: OpenForWriting and OpenSame prove it", name)
			}
		}
		for _, found := range fields.FindAllString(string(text), -1) {
			t.Errorf("%s has %q: use Encrypted, OnLVM or HasFilesystem", name, found)
		}
		return nil
	})
	if err != nil || opens != 1 {
		t.Errorf("%d places open a device, want 1; %v", opens, err)
	}
}
