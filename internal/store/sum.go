package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// A record is stored as its JSON with one more field, the checksum of its key and of all
// bytes before it. It detects a flipped bit, and a record under a wrong key. Older
// versions skip the field (encoding/json). Their records have no checksum: they are
// accepted and written again with one.
const (
	sumField  = `,"sum":"`
	sumEnd    = `"}`
	sumLength = 32 // hexadecimal digits: half of a SHA-256
)

var errSum = errors.New("its checksum is wrong")

func sumOf(key, body []byte) string {
	h := sha256.New()
	h.Write(key)
	h.Write([]byte{0})
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))[:sumLength]
}

// seal adds the checksum to a JSON object.
func seal(key, object []byte) []byte {
	body := bytes.TrimSuffix(object, []byte("}"))
	if len(body) == len(object) || len(body) < 2 { // {} or no object: a field cannot be added
		return object
	}
	return append(append(bytes.Clone(body), sumField+sumOf(key, body)...), sumEnd...)
}

// unseal verifies the checksum of a value. Sealed is false for a value without one.
func unseal(key, value []byte) (sealed bool, err error) {
	at := len(value) - len(sumField) - sumLength - len(sumEnd)
	if at < 0 || !bytes.HasPrefix(value[at:], []byte(sumField)) || !bytes.HasSuffix(value, []byte(sumEnd)) {
		return false, nil
	}
	have := value[at+len(sumField) : len(value)-len(sumEnd)]
	if want := sumOf(key, value[:at]); string(have) != want {
		return true, fmt.Errorf("%w: it is %q and not %s", errSum, have, want)
	}
	return true, nil
}
