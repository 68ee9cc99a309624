//go:build !race

package content

import "sync"

// buffers holds memory for ends: all drives of a machine are read together, again and again, and each
// buffer is needed only briefly.
var buffers = sync.Pool{New: func() any { b := make([]byte, driveEnd); return &b }}

func lend() *[]byte { return buffers.Get().(*[]byte) }

func takeBack(b *[]byte) { buffers.Put(b) }
