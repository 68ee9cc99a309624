// Package backoff decides how long failed work waits before it is tried again.
package backoff
