package agent

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAlive(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}, "": nil, "x": nil, "0-x": nil} {
		if got := processors(list); !slices.Equal(got, want) {
			t.Errorf("%q: %v", list, got)
		}
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, cpu := range processors(strings.TrimSpace(string(online))) {
		if err := visit(cpu); err != nil {
			t.Errorf("processor %d: %v", cpu, err)
		}
	}
	if took := time.Since(began); took < time.Millisecond {
		t.Errorf("nobody has slept: %v", took)
	}
	if err := visit(1 << 9); err == nil {
		t.Error("there is no such processor")
	}
}
