package drbd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// maxSecret is SHARED_SECRET_MAX of include/linux/drbd.h, less the NUL.
const maxSecret = 63

// Secret is the shared secret of a connection. It prints as "[secret]", whatever the verb, and has no text or
// JSON form: a secret cannot reach a log or a record by accident.
type Secret struct{ text string }

// NewSecret checks a secret.
func NewSecret(s string) (Secret, error) {
	if s == "" {
		return Secret{}, errors.New("shared secret: required")
	}
	if len(s) > maxSecret {
		return Secret{}, fmt.Errorf("shared secret: %d bytes, the kernel takes at most %d", len(s), maxSecret)
	}
	for i := range len(s) {
		if s[i] == 0 { // the kernel would end the secret there
			return Secret{}, errors.New("shared secret: contains a NUL byte")
		}
	}
	return Secret{s}, nil
}

// For returns the secret of one pair of volumes. The kernel connects whatever two devices are at the two addresses if their
// secrets are equal: with the same one for all volumes and crossed ports, a volume would get the data of another one.
func (s Secret) For(pair string) Secret {
	if s == (Secret{}) {
		return s
	}
	h := hmac.New(sha256.New, []byte(s.text))
	h.Write([]byte("replication of drivebay volume " + pair))
	return Secret{base64.RawStdEncoding.EncodeToString(h.Sum(nil))}
}

// Format prints "[secret]".
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[secret]") }

// MarshalText refuses.
func (s Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("shared secret: has no text form")
}
