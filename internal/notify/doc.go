// Package notify sends notices of what people have to know: a drive that turned BAD, a volume that is
// abnormal, work that waits for an operator. A notice goes to a webhook (JSON, signed) and to a
// command, each with its own bounded queue and back-off.
//
// A notice is made from an event, and each sink remembers the number of the event that it handled last
// in a file of the state directory: after a restart the sink continues with the next one. A notice whose
// delivery was under way at a crash is sent again with the same id.
//
// Nothing here can delay the engine: the notifier reads the events as any client does.
package notify
