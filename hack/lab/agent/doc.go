// Package agent is the wire between the lab and a guest: HTTP/2 over one
// virtio-serial port, so that many commands, copies and forwarded connections
// share it and a slow reader of one holds up none of the others.
//
// The guest's side is [Serve], the host's side is [Client].
package agent

// Command is what to run in the guest.
type Command struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // added to the guest's own
	Dir  string   `json:"dir,omitempty"`
	// Terminal runs it on a terminal of its own, with standard error in its output.
	Terminal *Window `json:"terminal,omitempty"`
}

// Window is the size of a terminal.
type Window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// exit is how a command ended.
type exit struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Error  string `json:"error,omitempty"` // it was never started
}

// The records of an exec answer: one byte kind, four bytes length, the bytes.
const (
	recordPID    = 'p' // decimal
	recordStdout = 'o'
	recordStderr = 'e'
	recordExit   = 'x' // JSON of exit; the last one
)

const maxRecord = 1 << 20
