package notify

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

// mark is an event that was handled, and all before it. The number alone does not tell: events that a
// crash has kept from the store, or that are of a store that was replaced, have their numbers again.
type mark struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

func (m mark) covers(e drivebay.Event) bool { return e.Seq <= m.Seq && !e.At.After(m.At) }

// cursor remembers the event that each sink has handled last, in a file. Its loss costs
// nothing but notices that are sent twice, or that are not sent for the time in which the daemon was
// stopped.
type cursor struct {
	file string // "": only in memory
	log  *slog.Logger

	mu      sync.Mutex
	last    map[string]mark
	failing bool
}

// load returns the marks in the file. A file that cannot be read counts as none.
func (c *cursor) load() map[string]mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = map[string]mark{}
	if c.file == "" {
		return nil
	}
	b, err := os.ReadFile(c.file)
	if err == nil {
		err = json.Unmarshal(b, &c.last)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("the file of the notices that were sent cannot be read: notices may be missing", "op", "notify", "err", err)
		}
		c.last = map[string]mark{}
	}
	return maps.Clone(c.last)
}

// set records that a sink has handled an event, and all before it.
func (c *cursor) set(sink string, m mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had, ok := c.last[sink]; ok && had == m {
		return
	}
	c.last[sink] = m
	if c.file == "" {
		return
	}
	err := c.write()
	if err != nil && !c.failing {
		c.log.Warn("the file of the notices that were sent cannot be written: notices may be sent again after a restart", "op", "notify", "err", err)
	}
	c.failing = err != nil
}

// write replaces the file. It is not flushed to the disk: a power cut costs a notice that is sent twice.
func (c *cursor) write() error {
	b, err := json.Marshal(c.last)
	if err != nil {
		return err
	}
	next := c.file + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}
