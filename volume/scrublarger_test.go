package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/gpt"
)

// TestScrubOfLargerFilesystem: a partition was made smaller than its filesystem, and its record is lost. The check of the filesystem, which ends
// with success, does not find it sound.
func TestScrubOfLargerFilesystem(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", ofType("ext4"))
		s.resizePart(v, func(p *gpt.Partition) { p.Size /= 2 })
		s.forget()
		time.Sleep(time.Minute)
		s.must(s.e.ScrubVolume(s.Context(), v.ID))
		time.Sleep(5 * time.Minute)
		if got := s.of(v); !strings.Contains(reasons(got.Condition), "FilesystemCorruption") {
			s.Errorf("it says %q, and its check %+v", got.Condition.Message(), got.Facts.FS.Scrub)
		}
	})
}
