package luks

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// FuzzHeader: whatever stands where a header is to be, what is read of it names no
// file outside the folder of the copies.
func FuzzHeader(f *testing.F) {
	whole := make([]byte, luksEnd)
	copy(whole, luksMagic)
	copy(whole[luksLabelAt:], "drivebay-x")
	copy(whole[luksSubsystemAt:], "ext4")
	for _, uuid := range []string{ledger.NewUUID(), "../../../../../../../../../etc/shadow", ""} {
		copy(whole[luksUUIDAt:luksSubsystemAt], append([]byte(uuid), make([]byte, luksSubsystemAt-luksUUIDAt-len(uuid))...))
		f.Add(bytes.Clone(whole))
	}
	f.Add(whole[:200])
	e := &Crypt{Env: &env.Env{Opt: env.Options{Headers: "/state/luks"}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		is, err := readHeader(bytes.NewReader(b))
		if (err == nil) != (is.uuid != "") {
			t.Fatalf("%+v, %v", is, err)
		}
		name := e.headerFile(&drivebay.Volume{ID: "x", LUKSUUID: is.uuid})
		if filepath.Dir(name) != "/state/luks" || len(b) < luksEnd && err == nil {
			t.Errorf("%q of %d bytes", name, len(b))
		}
	})
}
