package agent

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// serveAlive answers when every processor has run something and was woken by its own
// timer: one of them may be asleep for good while the others go on.
func serveAlive(w http.ResponseWriter, _ *http.Request) {
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, cpu := range processors(strings.TrimSpace(string(online))) {
		if err := visit(cpu); err != nil {
			http.Error(w, fmt.Sprintf("processor %d: %v", cpu, err), http.StatusInternalServerError)
			return
		}
	}
}

// visit sleeps for a moment on a processor.
func visit(cpu int) error {
	came := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		var only unix.CPUSet
		only.Set(cpu)
		err := unix.SchedSetaffinity(0, &only)
		if err == nil {
			err = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
		if err == unix.EINTR { // that woke it, too
			err = nil
		}
		came <- err
	}()
	return <-came
}

// processors reads a list of the kernel, "0-3,6" (Documentation/admin-guide/cputopology.rst).
func processors(list string) (out []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, span := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if span && err == nil {
			last, err = strconv.Atoi(to)
		}
		for n := first; err == nil && n <= last; n++ {
			out = append(out, n)
		}
	}
	return out
}

// Alive returns when every processor of the guest has given a sign of life.
func (c *Client) Alive(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/alive", nil, nil)
}
