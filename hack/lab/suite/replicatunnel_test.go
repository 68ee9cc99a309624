//go:build lab

package suite

import (
	"bytes"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

var tunnelRecipe = regexp.MustCompile("(?s)## Encryption\n.*?```sh\n(.*?)```")

// TestLabLongReplicationTunnel runs the WireGuard recipe of docs/replication.md on both machines and replicates a volume through the tunnel:
// nothing of what is written is readable on the network between them. Without the tunnel it is.
func TestLabLongReplicationTunnel(t *testing.T) {
	t.Parallel()
	recipe := tunnelRecipe.FindStringSubmatch(replicationPage(t))
	if recipe == nil {
		t.Fatal("docs/replication.md has no recipe")
	}
	p := newReplicaPair(t)
	makeKey, rest, _ := strings.Cut(recipe[1], "\n")
	keyOfA, keyOfB := p.a.Sh("mkdir -p /etc/wireguard; %s", makeKey), p.b.Sh("mkdir -p /etc/wireguard; %s", makeKey)
	p.a.Sh("%s", strings.NewReplacer("PUBLIC_KEY_OF_B", keyOfB, "ADDRESS_OF_B", "10.77.0.2").Replace(rest))
	p.b.Sh("%s", strings.NewReplacer("PUBLIC_KEY_OF_B", keyOfA, "ADDRESS_OF_B", "10.77.0.1", "10.99.0.1/24", "10.99.0.2/24", "10.99.0.2/32", "10.99.0.1/32").Replace(rest))

	const text = "drivebay writes this in plain text"
	var readable atomic.Int64
	p.cable.Watch(func(frame []byte) {
		if bytes.Contains(frame, []byte(text)) {
			readable.Add(1)
		}
	})
	write := func(name string) int64 {
		t.Helper()
		readable.Store(0)
		p.a.stage(name)
		p.a.Sh("yes %q | head -c 1M >%s/text; sync", text, runbookStage)
		p.a.unstage(name)
		return readable.Load()
	}
	p.enableOf("10.99.0", "data", 7800, "C", 64)
	if n := write("data"); n != 0 {
		t.Errorf("%d frames with readable text", n)
	}
	p.enable("plain", 7801, "C")
	if write("plain") == 0 {
		t.Error("no frame has readable text, without the tunnel either")
	}
	p.a.do("replication demote data --secret-file %s", runbookSecret)
	p.b.do("replication promote data --secret-file %s", runbookSecret)
	p.b.stage("data")
	p.b.Sh("grep -q %q %s/text", text, runbookStage)
	p.b.unstage("data")
}
