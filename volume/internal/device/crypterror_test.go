package device

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestCryptError: cryptsetup ends with 2 for every EPERM, and says that there is no key (translate_errno and tools_passphrase_msg of
// cryptsetup 2.6). A key that was right is not called wrong.
func TestCryptError(t *testing.T) {
	const wrong = "No key available with this passphrase.\n"
	for _, c := range []struct {
		code   int
		text   string
		secret bool
	}{
		{2, wrong, true},
		{2, "", true},
		{1, "No usable keyslot is available.\n", true},
		{2, "Failed to load key in kernel keyring.\n" + wrong, false},
		{2, "device-mapper: reload ioctl on drivebay-x (254:0) failed: Operation not permitted\n" + wrong, false},
		{1, "Device is not a valid LUKS device.\n", false},
	} {
		err := CryptError(&host.ExitError{Argv: []string{"cryptsetup"}, Code: c.code, Stderr: c.text})
		if err == nil || errors.Is(err, drivebay.ErrSecret) != c.secret {
			t.Errorf("status %d, %q: %v", c.code, c.text, err)
		}
	}
}
