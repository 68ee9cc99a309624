package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/api"
)

const (
	quietTime  = time.Second      // without a line, the log of the daemon counts as quiet
	bannerTime = 20 * time.Second // after which the banner is printed in any case
)

// quietLog passes the log of the daemon on, and knows when its last line came.
type quietLog struct {
	mu   sync.Mutex
	to   io.Writer
	last time.Time
}

func (q *quietLog) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = time.Now()
	return q.to.Write(p)
}

func (q *quietLog) quiet() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.last) > quietTime
}

// banner prints what to do next once the daemon is ready and its log is quiet, so that it is what one sees.
func (r rack) banner(ctx context.Context, log *quietLog) {
	client := api.Dial(r.address)
	defer client.Close()
	end := time.Now().Add(bannerTime)
	for time.Now().Before(end) {
		if st, err := client.Status(ctx); err == nil && st.Ready() && log.quiet() {
			break
		}
		select {
		case <-time.After(quietTime / 10):
		case <-ctx.Done():
			return
		}
	}
	fmt.Fprint(log, r.bannerText())
}

func (r rack) bannerText() string {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	program := strings.TrimPrefix(r.program, "./")
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe daemon is ready. Ctrl-C stops it. In another terminal:\n\n")
	fmt.Fprintf(&b, "  cd %s\n", quoted(dir))
	fmt.Fprintf(&b, "  export DRIVEBAY_API=%s", quoted(r.address))
	if r.csi != "" {
		fmt.Fprintf(&b, " CSI_ENDPOINT=%s", quoted(r.csi))
	}
	b.WriteString("\n")
	for _, line := range commands {
		fmt.Fprintf(&b, "  %s %s\n", quoted(program), line)
	}
	b.WriteString("\n")
	return b.String()
}

// commands are the commands of the banner; a test runs them.
var commands = []string{"drives", "claim", "volume create data-1 --size 1GiB", "volumes", "explain data-1"}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:+@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
