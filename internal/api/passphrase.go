package api

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// Passphrase is that of an encrypted volume on its way to the engine. It stands in
// the body of a request and in no answer; printed, it does not say what it is.
type Passphrase string

func (Passphrase) String() string   { return "(secret)" }
func (Passphrase) GoString() string { return "(secret)" }

// maxPassphrase is what a field may hold (CSI specification, size limits).
const maxPassphrase = 4096

// check refuses what does not survive JSON: of bytes that are no text, others would
// arrive than were sent.
func (p Passphrase) check() error {
	switch {
	case len(p) > maxPassphrase:
		return fmt.Errorf("passphrase: %w: it is longer than %d bytes", drivebay.ErrInvalid, maxPassphrase)
	case !utf8.ValidString(string(p)) || strings.ContainsRune(string(p), utf8.RuneError):
		return fmt.Errorf("passphrase: %w: it is no text (UTF-8)", drivebay.ErrInvalid)
	}
	return nil
}

func (p Passphrase) secrets() drivebay.Secrets {
	if p == "" {
		return nil
	}
	return drivebay.Secrets{drivebay.SecretPassphrase: string(p)}
}

// maySend: on the network anybody could read it, and nobody there makes volumes.
func (c *Client) maySend(p Passphrase) error {
	if p != "" && !strings.HasPrefix(c.url, "unix:") {
		return fmt.Errorf("%s: %w: a passphrase is sent to the daemon's unix socket only", c.url, drivebay.ErrRefused)
	}
	return p.check()
}
