// Package backoff decides how long failed work of the engine waits before it is tried again.
package backoff
