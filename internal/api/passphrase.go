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

func (p Passphrase) check() error { return checkSecret("passphrase", string(p)) }

// checkSecret rejects a secret that JSON would change: bytes that are not UTF-8 arrive as other
// bytes.
func checkSecret(field, s string) error {
	switch {
	case len(s) > maxPassphrase:
		return fmt.Errorf("%s: %w: it is longer than %d bytes", field, drivebay.ErrInvalid, maxPassphrase)
	case !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError):
		return fmt.Errorf("%s: %w: not valid text (UTF-8)", field, drivebay.ErrInvalid)
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
	if p != "" && !c.local() {
		return fmt.Errorf("%s: %w: a passphrase is sent to the daemon's unix socket only", c.url, drivebay.ErrRefused)
	}
	return p.check()
}

func (c *connection) local() bool { return strings.HasPrefix(c.url, "unix:") }
