package moves

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestPaces: the work on each volume has its own progress and expected end, and none once it is at its end.
func TestPaces(t *testing.T) {
	var p paces
	began := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	p.goes("a", 0, 100, began)
	p.goes("b", 10, 20, began)
	if got, want := p.progress("a"), (drivebay.Progress{Total: 100}); got != want {
		t.Errorf("at its start: %+v, want %+v", got, want)
	}
	p.goes("a", 25, 100, began.Add(20*time.Second))
	if got, want := p.progress("a"), (drivebay.Progress{Done: 25, Total: 100, End: began.Add(80 * time.Second)}); got != want {
		t.Errorf("a quarter is done: %+v, want %+v", got, want)
	}
	p.goes("a", 100, 100, began.Add(30*time.Second))
	if got := p.progress("a"); got != (drivebay.Progress{}) {
		t.Errorf("at its end: %+v", got)
	}
	p.goes("b", 0, 0, began)
	if len(p.by) > 0 {
		t.Errorf("left: %v", p.by)
	}
}
