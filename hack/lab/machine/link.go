package machine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// Link is a network between machines: each has a cable to a switch, which is this program.
// The first machine that starts with it has the address 10.77.0.1, the second 10.77.0.2, and so on.
type Link struct {
	mu   sync.Mutex
	ends []*linkEnd // of the machine 1, 2, ...
	lost [][2]int   // the frames from one machine to another are lost
	seen func(frame []byte)
}

// linkEnd is a port of the switch. A machine that was started again is connected to the port that it had.
type linkEnd struct {
	number int
	l      net.Listener
	frames chan []byte // to the machine
}

// NewLink makes a switch without cables.
func NewLink() *Link { return &Link{} }

const (
	linkID     = "link"
	linkQueue  = 1024     // frames that wait for a machine; those beyond are lost, as in any switch
	frameLimit = 68 << 10 // of QEMU (net/net.c, NET_BUFSIZE)
)

// Lose has the switch lose what machine from sends to machine to, until it is called with false. Neither of
// them can tell: a link that is open in one direction only.
func (l *Link) Lose(from, to int, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = slices.DeleteFunc(l.lost, func(x [2]int) bool { return x == [2]int{from, to} })
	if on {
		l.lost = append(l.lost, [2]int{from, to})
	}
}

// Watch calls a function with each frame that a machine sends, one after the other.
func (l *Link) Watch(seen func(frame []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = seen
}

// plug returns a new port, whose socket is a file.
func (l *Link) plug(path string) (*linkEnd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	e := &linkEnd{len(l.ends) + 1, listener, make(chan []byte, linkQueue)}
	l.ends = append(l.ends, e)
	go l.serve(e)
	return e, nil
}

// unplug takes back the last port, or leaves one that is not the last without a machine.
func (l *Link) unplug(e *linkEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.l.Close()
	if n := len(l.ends); l.ends[n-1] == e {
		l.ends = l.ends[:n-1]
	}
}

// serve connects one QEMU after the other to a port.
func (l *Link) serve(e *linkEnd) {
	for {
		conn, err := e.l.Accept()
		if err != nil {
			return
		}
		gone := make(chan struct{})
		go e.send(conn, gone)
		l.receive(e, conn)
		conn.Close()
		close(gone)
	}
}

// receive passes on what a machine sends until it is gone. QEMU puts the length before each frame, in network order (net/stream.c).
func (l *Link) receive(e *linkEnd, conn net.Conn) {
	r := bufio.NewReaderSize(conn, frameLimit)
	for {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > frameLimit {
			return
		}
		frame := append(length[:], make([]byte, n)...)
		if _, err := io.ReadFull(r, frame[4:]); err != nil {
			return
		}
		l.forward(e, frame)
	}
}

// forward gives a frame to all other ports: the network cards pick out what is for them.
func (l *Link) forward(from *linkEnd, frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != nil {
		l.seen(frame[4:])
	}
	for _, to := range l.ends {
		if to == from || slices.Contains(l.lost, [2]int{from.number, to.number}) {
			continue
		}
		select {
		case to.frames <- frame:
		default:
		}
	}
}

// send writes to a machine what waits for it, until it is gone.
func (e *linkEnd) send(conn net.Conn, gone chan struct{}) {
	w := bufio.NewWriterSize(conn, frameLimit)
	for {
		select {
		case frame := <-e.frames:
			_, err := w.Write(frame)
			if len(e.frames) == 0 {
				err = errors.Join(err, w.Flush())
			}
			if err != nil {
				return
			}
		case <-gone:
			return
		}
	}
}

// plugLink puts a network card in and gives it its address.
func (m *Machine) plugLink(ctx context.Context) error {
	if m.spec.Link == nil {
		return nil
	}
	path := filepath.Join(m.Dir, "cable")
	if m.link == nil {
		end, err := m.spec.Link.plug(path)
		if err != nil {
			return err
		}
		m.link = end
	}
	// A stream, not datagrams: QEMU drops those that find a full socket.
	netdev := map[string]any{"type": "stream", "id": linkID, "server": false, "addr": map[string]any{"type": "unix", "path": path}}
	if _, err := m.control.Run(ctx, "netdev_add", netdev); err != nil {
		return fmt.Errorf("lay the cable: %w", err)
	}
	card := device{"driver": "virtio-net-pci", "id": linkID + "-card", "netdev": linkID, "bus": "slot" + strconv.Itoa(slots),
		"mac": fmt.Sprintf("52:54:00:77:00:%02x", m.link.number), "romfile": ""}
	if _, err := m.control.Run(ctx, "device_add", card); err != nil {
		return fmt.Errorf("plug a network card in: %w", err)
	}
	// udev renames the card once it is there.
	const up = `for i in $(seq 200); do n=$(grep -l 52:54:00:77 /sys/class/net/*/address) && n=$(basename $(dirname $n)) && ip addr replace 10.77.0.%d/24 dev $n && ip link set $n up && exit; sleep 0.02; done 2>/dev/null
ip addr; exit 1`
	_, err := m.Guest.Shell(ctx, fmt.Sprintf(up, m.link.number))
	return err
}

// dropLink gives the end of the cable back.
func (m *Machine) dropLink() {
	if m.link != nil {
		m.spec.Link.unplug(m.link)
		m.link = nil
	}
}

// SetLink cuts the cable at this machine's end, or mends it.
func (m *Machine) SetLink(ctx context.Context, up bool) error {
	_, err := m.control.Run(ctx, "set_link", map[string]any{"name": linkID + "-card", "up": up})
	return err
}
