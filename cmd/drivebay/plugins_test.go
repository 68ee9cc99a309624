package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/drivebay/drivebay/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The sockets of the plugins are for root alone, come with the daemon and go with it.
func TestPlugins(t *testing.T) {
	dir := shortDir(t)
	sockets := []string{filepath.Join(dir, "csi.sock"), filepath.Join(dir, "addons.sock")}
	r, _ := rack(t, 2, "--csi-endpoint", "unix://"+sockets[0], "--addons-endpoint", "unix://"+sockets[1])
	for _, s := range sockets {
		if st, err := os.Stat(s); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", s, st, err)
		}
		if !strings.Contains(r.out.String(), "unix://"+s) {
			t.Errorf("the greeting does not name %s:\n%s", s, r.out.String())
		}
	}
	conn, err := grpc.NewClient("unix://"+sockets[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := identity.NewIdentityClient(conn)
	if who, err := client.GetIdentity(t.Context(), &identity.GetIdentityRequest{}); err != nil || who.Name != csi.Name || who.VendorVersion == "" {
		t.Errorf("GetIdentity: %v, %v", who, err)
	}
	eventually(t, patience, func() bool {
		p, err := client.Probe(t.Context(), &identity.ProbeRequest{})
		return err == nil && p.Ready.GetValue()
	}, r.err.String)

	if _, errs, code := call(t, nil, "serve", "--sim", "/nowhere", "--addons-endpoint", "tcp://127.0.0.1:1"); code != exitFailure || !strings.Contains(errs, "--addons-endpoint: addonsEndpoint") {
		t.Errorf("an endpoint that is none: %d %q", code, errs)
	}
	other := map[string]string{"DRIVEBAY_STATE_DIR": filepath.Join(dir, "2"), "DRIVEBAY_API": "unix://" + filepath.Join(dir, "api")}
	if _, errs, code := call(t, other, "serve", "--root", recording(t), "--addons-endpoint", "unix://"+sockets[1]); code != exitFailure || !strings.Contains(errs, "another daemon answers there: choose another socket with --addons-endpoint") {
		t.Errorf("an endpoint of another daemon: %d %q", code, errs)
	}
	if code, _ := r.end(); code != exitOK {
		t.Errorf("exit status %d", code)
	}
	for _, s := range sockets {
		if _, err := os.Lstat(s); err == nil {
			t.Errorf("%s is still there", s)
		}
	}
}
