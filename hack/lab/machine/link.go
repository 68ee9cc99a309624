package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Link is a cable between two machines. The first one that starts with it has
// the address 10.77.0.1, the second 10.77.0.2.
type Link struct {
	mu   sync.Mutex
	ends int
	dir  string
}

// NewLink makes a cable; its socket lies in the first machine's folder.
func NewLink() *Link { return &Link{} }

const linkID = "link"

// plugLink puts a network card in and gives it its address.
func (m *Machine) plugLink(ctx context.Context) error {
	l := m.spec.Link
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.linkEnd == 0 {
		l.ends++
		m.linkEnd = l.ends
	}
	if m.linkEnd > 2 {
		return fmt.Errorf("a cable has two ends")
	}
	if m.linkEnd == 1 {
		l.dir = m.Dir
		os.Remove(filepath.Join(l.dir, "cable"))
	}
	// A stream, not datagrams: QEMU drops those that find a full socket.
	netdev := map[string]any{"type": "stream", "id": linkID, "server": m.linkEnd == 1,
		"addr": map[string]any{"type": "unix", "path": filepath.Join(l.dir, "cable")}}
	if _, err := m.control.Run(ctx, "netdev_add", netdev); err != nil {
		return fmt.Errorf("lay the cable: %w", err)
	}
	card := device{"driver": "virtio-net-pci", "id": linkID + "-card", "netdev": linkID, "bus": "slot" + strconv.Itoa(slots),
		"mac": fmt.Sprintf("52:54:00:77:00:%02x", m.linkEnd), "romfile": ""}
	if _, err := m.control.Run(ctx, "device_add", card); err != nil {
		return fmt.Errorf("plug a network card in: %w", err)
	}
	const up = `for i in $(seq 200); do n=$(grep -l 52:54:00:77 /sys/class/net/*/address 2>/dev/null) && break; sleep 0.02; done
n=$(basename $(dirname $n)); ip addr add 10.77.0.%d/24 dev $n && ip link set $n up`
	_, err := m.Guest.Shell(ctx, fmt.Sprintf(up, m.linkEnd))
	return err
}

// dropLink gives the end of the cable back, of a machine that did not come up.
func (m *Machine) dropLink() {
	if l := m.spec.Link; l != nil && m.linkEnd > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ends--
		m.linkEnd = 0
	}
}

// SetLink cuts the cable at this machine's end, or mends it.
func (m *Machine) SetLink(ctx context.Context, up bool) error {
	_, err := m.control.Run(ctx, "set_link", map[string]any{"name": linkID + "-card", "up": up})
	return err
}
