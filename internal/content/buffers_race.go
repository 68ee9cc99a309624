//go:build race

package content

import "sync"

// Under the race detector a sync.Pool drops a quarter of what it is given (sync/pool.go, Put), and each collection of
// garbage the rest. A new buffer of a mebibyte is cleared there, and its shadow with it: that was a tenth to a third of the
// time of the tests.
var buffers struct {
	mu   sync.Mutex
	free []*[]byte
}

func lend() *[]byte {
	buffers.mu.Lock()
	defer buffers.mu.Unlock()
	n := len(buffers.free)
	if n == 0 {
		b := make([]byte, driveEnd)
		return &b
	}
	b := buffers.free[n-1]
	buffers.free = buffers.free[:n-1]
	return b
}

func takeBack(b *[]byte) {
	buffers.mu.Lock()
	defer buffers.mu.Unlock()
	buffers.free = append(buffers.free, b)
}
