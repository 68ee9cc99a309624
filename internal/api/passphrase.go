package api

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// Passphrase is the passphrase of an encrypted volume. It is part of a request and of no answer;
// printing it shows only "(secret)".
type Passphrase string

func (Passphrase) String() string   { return "(secret)" }
func (Passphrase) GoString() string { return "(secret)" }

// maxPassphrase is the largest size of a field (CSI specification, size limits).
const maxPassphrase = 4096

// check rejects a passphrase that JSON would change: bytes that are not UTF-8 arrive as other
// bytes.
func (p Passphrase) check() error {
	switch {
	case len(p) > maxPassphrase:
		return fmt.Errorf("passphrase: %w: it is longer than %d bytes", drivebay.ErrInvalid, maxPassphrase)
	case !utf8.ValidString(string(p)) || strings.ContainsRune(string(p), utf8.RuneError):
		return fmt.Errorf("passphrase: %w: not valid text (UTF-8)", drivebay.ErrInvalid)
	}
	return nil
}

func (p Passphrase) secrets() drivebay.Secrets {
	if p == "" {
		return nil
	}
	return drivebay.Secrets{drivebay.SecretPassphrase: string(p)}
}

// maySend rejects a passphrase on a network connection: it could be read there, and only the unix
// socket serves calls that need one.
func (c *connection) maySend(p Passphrase) error {
	if p != "" && !strings.HasPrefix(c.url, "unix:") {
		return fmt.Errorf("%s: %w: a passphrase is sent to the daemon's unix socket only", c.url, drivebay.ErrRefused)
	}
	return p.check()
}
