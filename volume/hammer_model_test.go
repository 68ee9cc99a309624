package volume_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// model is what a client of drivebay may rely on, and what an operator has done: no part of
// it is read from drivebay.
type model struct {
	mu        sync.Mutex
	volumes   []*client                  // those that were asked for and not deleted, in this order
	marks     map[uint64]*stamp          // every page that was ever written, by its number
	claimed   map[string]bool            // serial numbers of drives that drivebay may write to
	keep      map[string][]extent        // bytes that drivebay must not touch, by serial number
	faults    map[string]time.Time       // what is wrong with drives and mounts, and since when: "pulled D0001"
	ended     map[string]time.Time       // when the last fault of a drive ended, by serial number
	mayReturn map[string]map[uint64]bool // by name
	errs      []string
}

// client is a volume as its client knows it.
type client struct {
	name    string
	number  int // no two have the same one, whatever their names
	request drivebay.VolumeRequest
	volume  drivebay.Volume
	acked   bool // drivebay said that it is made
	doomed  bool // its deletion was asked for
	staged  bool // by the last answer
	used    bool // published: a pod has it open
	// unrecorded says that the records were lost, or replaced by older ones, since it was made.
	unrecorded bool
	// mayReturn are marks of earlier volumes of its name that were deleted while their drive was
	// away, after which the records were lost: nothing says that they were deleted.
	mayReturn map[uint64]bool
	pages     map[uint64]uint64   // offset -> number of the mark that was acknowledged
	maybe     map[uint64][]uint64 // marks whose write failed, or that a snapshot may show
	size      uint64
	key, next string // the secret of an encrypted volume, and the one that a rotation is to give it
	doubtful  bool   // the machine was restarted, or a full disk kept records from being written: drivebay may take it for used
}

// stamp is the content of a page, which is written once in the whole run.
type stamp struct {
	owner *client // nil: data of others
	page  uint64  // offset within the volume
	on    map[pageOf]bool
}

// pageOf is a page of a drive.
type pageOf struct {
	drive string
	off   uint64
}

type extent struct{ off, n uint64 }

const pageSize = hostsim.PageSize

var markMagic = []byte("\x00hammer\x00")

// render is the page of a mark.
func render(number uint64) []byte {
	b := make([]byte, 0, pageSize)
	b = append(b, markMagic...)
	b = binary.LittleEndian.AppendUint64(b, number)
	for x := number; len(b) < pageSize; {
		x = x*6364136223846793005 + 1442695040888963407
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// markOf is the mark that a page holds; 0: none.
func markOf(b []byte) uint64 {
	if len(b) < 16 || !bytes.Equal(b[:8], markMagic) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[8:])
}

func markIn(p *[pageSize]byte) uint64 {
	if p == nil {
		return 0
	}
	return markOf(p[:])
}

// fresh makes the next mark.
func (m *model) fresh(owner *client, page uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := uint64(len(m.marks) + 1)
	m.marks[number] = &stamp{owner: owner, page: page, on: map[pageOf]bool{}}
	return number
}

// wrong notes a broken rule.
func (m *model) wrong(format string, args ...any) {
	if len(m.errs) < 10 {
		m.errs = append(m.errs, fmt.Sprintf(format, args...))
	}
}

// wrote is called for every write to a drive, with the machine locked.
func (m *model) wrote(w hostsim.Write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ours := w.By == "" || w.By == hostsim.WriterMirror || w.By == hostsim.WriterMove
	if ours {
		m.allowed(w)
	}
	for _, p := range w.Pages {
		at := pageOf{w.Drive, p.Off}
		before, after := markIn(p.Old), markIn(p.New)
		if before == after {
			continue
		}
		if x := m.marks[before]; x != nil {
			delete(x.on, at)
			if ours {
				m.lost(w, before, x, p.Off)
			}
		}
		if x := m.marks[after]; x != nil {
			x.on[at] = true
		}
	}
}

// allowed: drivebay and what it runs write to claimed drives alone, and never to bytes of
// others. Staging asks for no claim, and the kernel completes the legs of a mirror then. A copy of the
// kernel goes on when the records are lost, and the claims with them: to stop it takes another write.
func (m *model) allowed(w hostsim.Write) {
	if !m.claimed[w.Drive] && w.By != hostsim.WriterMirror && w.By != hostsim.WriterMove {
		m.wrong("%d bytes at %d were written to drive %s, which is not claimed", w.N, w.Off, w.Drive)
	}
	for _, k := range m.keep[w.Drive] {
		if w.Off < k.off+k.n && k.off < w.Off+w.N {
			m.wrong("%d bytes at %d of drive %s were written over data of others at %d", w.N, w.Off, w.Drive, k.off)
		}
	}
}

// lost: the last copy of an acknowledged page is overwritten by its client alone.
func (m *model) lost(w hostsim.Write, number uint64, x *stamp, off uint64) {
	c := x.owner
	if c == nil {
		m.wrong("%d bytes at %d of drive %s were written over data of others", w.N, w.Off, w.Drive)
		return
	}
	if len(x.on) == 0 && c.acked && !c.doomed && c.pages[x.page] == number && !c.hidden() {
		m.wrong("volume %s: the acknowledged page at %d was overwritten: %d bytes at %d of drive %s", c.name, x.page, w.N, w.Off, w.Drive)
	}
}

// hidden says whether a volume's pages have no place of their own on a drive, or are not to be read there.
func (c *client) hidden() bool { return c.thin() || c.key != "" }

func (c *client) thin() bool  { return c.request.Class.Backing == drivebay.BackingThin }
func (c *client) block() bool { return c.request.Block }

// window are the offsets at which the pod of a volume writes: below a filesystem those that
// the simulated one leaves alone.
func (c *client) window() (from, to uint64) {
	if c.block() {
		return 0, c.size
	}
	return 256 << 10, 1 << 20
}

// accepts says whether a page of a volume may read so.
func (c *client) accepts(page uint64, b []byte) bool {
	number, found := c.pages[page]
	if !found {
		number = 0
	}
	got := markOf(b)
	if got != number && !slices.Contains(c.maybe[page], got) && !c.mayReturn[got] {
		return false
	}
	return got == 0 || bytes.Equal(b, render(got))
}

// fault notes that something is wrong from now on; lifted, that it is not any more.
func (m *model) fault(what string) {
	if _, there := m.faults[what]; !there {
		m.faults[what] = time.Now()
	}
}

func (m *model) lifted(what string) {
	if _, there := m.faults[what]; there {
		m.ended[what[strings.LastIndex(what, " ")+1:]] = time.Now()
	}
	delete(m.faults, what)
}

// empty says whether no page of a client, and none of others, is on a drive.
func (m *model) empty(drive string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.marks {
		for at := range x.on {
			if at.drive == drive {
				return false
			}
		}
	}
	return len(m.keep[drive]) == 0
}
