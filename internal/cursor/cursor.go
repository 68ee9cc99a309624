// Package cursor remembers across restarts which events of the machine a reader has handled.
package cursor

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// Mark is an event that was handled, and all before it. The number alone does not tell: events that a
// crash has kept from the store, or that are of a store that was replaced, have their numbers again.
type Mark struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

// Covers reports whether an event was handled.
func (m Mark) Covers(e drivebay.Event) bool { return e.Seq <= m.Seq && !e.At.After(m.At) }

// Cursor remembers the event that each reader has handled last, in a file. Its loss costs nothing but
// events that are handled twice, or that are not handled for the time in which the daemon was stopped.
type Cursor struct {
	path string // "": only in memory
	log  *slog.Logger

	mu      sync.Mutex
	last    map[string]Mark
	failing bool
}

// New returns the cursor in a file; "" keeps it in memory.
func New(path string, log *slog.Logger) *Cursor {
	return &Cursor{path: path, log: log, last: map[string]Mark{}}
}

// Load returns the marks in the file. A file that cannot be read counts as none.
func (c *Cursor) Load() map[string]Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = map[string]Mark{}
	if c.path == "" {
		return nil
	}
	b, err := os.ReadFile(c.path)
	if err == nil {
		err = json.Unmarshal(b, &c.last)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("the file of the events that were handled cannot be read: some may not be handled", "err", err)
		}
		c.last = map[string]Mark{}
	}
	return maps.Clone(c.last)
}

// Set records that a reader has handled an event, and all before it.
func (c *Cursor) Set(reader string, m Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had, ok := c.last[reader]; ok && had == m {
		return
	}
	c.last[reader] = m
	if c.path == "" {
		return
	}
	err := c.write()
	if err != nil && !c.failing {
		c.log.Warn("the file of the events that were handled cannot be written: some may be handled again after a restart", "err", err)
	}
	c.failing = err != nil
}

// write replaces the file. It is not flushed to the disk: a power cut costs an event that is handled twice.
func (c *Cursor) write() error {
	b, err := json.Marshal(c.last)
	if err != nil {
		return err
	}
	next := c.path + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.path)
}
