package luks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// bare is a machine that may lack cryptsetup.
type bare struct {
	host.Worker
	now   time.Time
	lacks error
	runs  int
}

func (b *bare) Now() time.Time                   { return b.now }
func (b *bare) ReadDir(string) ([]string, error) { return nil, nil }
func (b *bare) Run(context.Context, ...string) ([]byte, error) {
	b.runs++
	return nil, b.lacks
}

// TestSupportIsRemembered: a report on the room of every class starts no program for each of them.
func TestSupportIsRemembered(t *testing.T) {
	m := &bare{now: time.Now(), lacks: fs.ErrNotExist}
	e := &Crypt{Env: &env.Env{Machine: m}}
	asked := func(what string, times, runs int, want error) {
		t.Helper()
		m.runs = 0
		for range times {
			if err := e.CanEncrypt(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		if m.runs != runs {
			t.Errorf("%s: %d programs were run, want %d", what, m.runs, runs)
		}
	}
	asked("it is missing", 20, 1, drivebay.ErrNoSupport)
	m.now = m.now.Add(lackTime)
	asked("looked for again", 20, 1, drivebay.ErrNoSupport)
	m.now, m.lacks = m.now.Add(lackTime), fmt.Errorf("run: %w", context.DeadlineExceeded)
	asked("it does not answer", 2, 2, context.DeadlineExceeded)
	m.lacks = nil
	asked("it was installed", 20, 1, nil)
	m.now, m.lacks = m.now.Add(time.Hour), fs.ErrNotExist
	asked("much later", 20, 0, nil)
}
