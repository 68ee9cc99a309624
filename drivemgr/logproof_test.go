package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// badDisk is a drive of 64 MiB, some sectors of which cannot be read.
type badDisk struct {
	host.OpenDrive
	bad   map[int64]bool
	reads int
}

func (b *badDisk) ReadMedium(p []byte, off int64) (int, error) {
	b.reads++
	for s := off / 512; s < (off+int64(len(p)))/512; s++ {
		if b.bad[s] {
			return 0, errors.New("input/output error")
		}
	}
	if off+int64(len(p)) > 64<<20 {
		return 0, io.EOF
	}
	return len(p), nil
}

// TestErrorsAreProvedGone: what the kernel logged stands until its place was read, or,
// of a drive that left, until it is back and all places were read. What it says of bad
// sectors ends by their places alone, and what a write met not by a read.
func TestErrorsAreProvedGone(t *testing.T) {
	const (
		write  = "I/O error, dev sda, sector 16 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2"
		read   = "I/O error, dev sda, sector 16 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
		medium = "critical medium error, dev sda, sector 24 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
		spoilt = "critical medium error, dev sda, sector 24 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2"
		lost   = "Buffer I/O error on dev sda, logical block 2, lost async page write"
		part   = "critical medium error, dev dm-3, sector 24 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
		away   = "device offline error, dev sda, sector 16 op 0x1:(WRITE) flags 0x4000 phys_seg 2 prio class 2"    // since Linux 5.18
		fenced = "reservation conflict error, dev sda, sector 16 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2" // since Linux 6.5
		gaveUp = "sd 1:0:0:0: Device offlined - not ready after error recovery"
	)
	pulled := func(m *Manager, tr *state.Tracked) {
		m.tracking.SetOffline(tr.Drive.ID, tr, m.state.Machine.Now())
		tr.Begin(m.state.Machine.Now())
	}
	givenUp := func(m *Manager, tr *state.Tracked) { tr.Kernlog.MarkLeft(m.state.Machine.Now()) }
	for name, c := range map[string]struct {
		before   time.Duration // from the error to what happens
		lines    []string
		happens  func(*Manager, *state.Tracked)
		bad      int64
		left     uint64 // errors that stand in the end
		sectors  int
		forDrive uint64 // that are counted of the drive
	}{
		"a write of a drive that was pulled":                                    {time.Second, []string{write, lost}, pulled, -1, 0, 0, 0},
		"a write that waited before it failed":                                  {3 * time.Minute, []string{write, lost}, pulled, -1, 0, 0, 0},
		"a write long before":                                                   {time.Hour, []string{write, lost}, pulled, -1, 2, 0, 2},
		"a write, and a place that cannot be read":                              {time.Second, []string{write, lost}, pulled, 16, 2, 0, 2},
		"a fault within the request":                                            {time.Second, []string{write, lost}, pulled, 4096, 2, 0, 2},
		"a fault that no request met":                                           {time.Second, []string{write}, pulled, 100000, 0, 0, 0},
		"the end of the drive cannot be read":                                   {time.Second, []string{lost}, pulled, 64<<11 - 1, 1, 0, 1},
		"a bad sector of a drive that was pulled":                               {time.Second, []string{medium}, pulled, 24, 1, 1, 1},
		"a bad sector that was written anew":                                    {time.Second, []string{medium}, pulled, -1, 0, 0, 1},
		"a bad sector that could not be written":                                {time.Second, []string{spoilt}, pulled, -1, 1, 1, 1},
		"given up and back":                                                     {time.Second, []string{write, lost}, givenUp, -1, 0, 0, 0},
		"stayed, a read":                                                        {time.Second, []string{read}, nil, -1, 0, 0, 1},
		"stayed, a read that fails":                                             {time.Second, []string{read}, nil, 16, 1, 0, 1},
		"stayed, a write":                                                       {time.Second, []string{write, lost}, nil, -1, 2, 0, 2},
		"stayed, a write while the kernel had it offline":                       {time.Second, []string{away}, nil, -1, 1, 0, 1},
		"stayed, a write that a reservation refused":                            {time.Second, []string{fenced}, nil, -1, 1, 0, 1},
		"a write of a drive that disconnected, and is back":                     {time.Second, []string{away}, pulled, -1, 0, 0, 0},
		"a write of a drive that disconnected, and a place that cannot be read": {time.Second, []string{away}, pulled, 16, 1, 0, 1},
		"stayed, a bad sector":                                                  {time.Second, []string{medium}, nil, 24, 1, 1, 1},
		"stayed, a bad sector that was written anew":                            {time.Second, []string{medium}, nil, -1, 0, 0, 1},
		"stayed, a sector of what is above":                                     {time.Second, []string{part}, nil, -1, 1, 0, 1},
		"one of two, of a drive that stayed":                                    {time.Second, []string{read, write, medium}, nil, -1, 1, 0, 3},
		"a bad sector keeps what has no place":                                  {time.Second, []string{lost, medium}, pulled, 24, 2, 1, 2},
		"offlined by the kernel":                                                {time.Hour, []string{gaveUp}, nil, -1, 0, 0, 0},
		"offlined by the kernel, and not to be read":                            {time.Hour, []string{gaveUp}, nil, 0, 1, 0, 1},
		"the same error again, after what was proved ":                          {time.Second, []string{read, read}, nil, -1, 0, 0, 2},
	} {
		m, tr := oneTracked(t, "sda")
		tr.Drive.Size, tr.Drive.LogicalBlock = 64<<20, 512
		tr.Drive.Paths = append(tr.Drive.Paths, drivebay.Path{Address: "1:0:0:0"})
		tr.Drive.Uses = append(tr.Drive.Uses, drivebay.Use{Device: "dm-3"})
		now := m.state.Machine.Now()
		tr.PresentSince = now.Add(-24 * time.Hour)
		for _, line := range c.lines {
			m.poll.AddLogLine(host.LogLine{At: now.Add(-c.before), Text: line})
		}
		if c.happens != nil {
			c.happens(m, tr)
		}
		k := &drivebay.Kernel{}
		if tr.Kernlog.Count(k, now); k.UnresolvedErrors == 0 {
			t.Errorf("%s: nothing stands before it is proved", name)
		}
		if want := map[bool]uint64{true: k.OtherErrors24h}[c.happens != nil && c.before <= 5*time.Minute]; k.LeftErrors != want && c.lines[0] != gaveUp {
			t.Errorf("%s: %d of %d came because it left", name, k.LeftErrors, k.OtherErrors24h)
		}
		prove(tr, &badDisk{bad: map[int64]bool{c.bad: true}}, now)
		k = &drivebay.Kernel{}
		tr.Kernlog.Count(k, now)
		if k.LeftErrors != 0 {
			t.Errorf("%s: %d errors are still to be explained", name, k.LeftErrors)
		}
		if k.UnresolvedErrors != c.left || len(k.BadSectors) != c.sectors || k.MediaErrors24h+k.OtherErrors24h != c.forDrive {
			t.Errorf("%s: %d errors, %d bad sectors, %d for the drive; want %d, %d and %d", name,
				k.UnresolvedErrors, len(k.BadSectors), k.MediaErrors24h+k.OtherErrors24h, c.left, c.sectors, c.forDrive)
		}
	}
}

func prove(tr *state.Tracked, d host.OpenDrive, now time.Time) {
	if p := tr.Kernlog.ProofOf(); p != nil {
		got := p.Read(context.Background(), d, &tr.Drive)
		tr.TakeProof(state.Reading{Of: tr, Proof: p, Result: evidence.Result{Proved: &got}}, now)
	}
}

// TestErrorAfterTheProof: an error that comes while a place is read is not ended by that.
func TestErrorAfterTheProof(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	tr.Drive.Size = 64 << 20
	line := host.LogLine{At: m.state.Machine.Now(), Text: "critical medium error, dev sda, sector 24 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"}
	m.poll.AddLogLine(line)
	p := tr.Kernlog.ProofOf()
	m.poll.AddLogLine(line)
	got := p.Read(context.Background(), &badDisk{}, &tr.Drive)
	tr.TakeProof(state.Reading{Of: tr, Proof: p, Result: evidence.Result{Proved: &got}}, m.state.Machine.Now())
	k := &drivebay.Kernel{}
	if tr.Kernlog.Count(k, m.state.Machine.Now()); len(k.BadSectors) != 1 {
		t.Errorf("it says %+v", k)
	}
}

// TestLateLinesOfAnAbsence: what the kernel logged while a drive was away may be read when it is back. It puts the proof off no more than
// what was read before; an error of the drive that is there waits, until the kernel has given up on it.
func TestLateLinesOfAnAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		at  time.Duration // from the return to the line
		due bool
	}{"while it was away": {-time.Second, true}, "when it was back": {0, false}} {
		m, tr := oneTracked(t, "sda")
		now := m.state.Machine.Now()
		m.tracking.SetOffline(tr.Drive.ID, tr, now)
		tr.Begin(now)
		tr.Drive.Kernel = &drivebay.Kernel{}
		m.poll.AddLogLine(host.LogLine{At: now.Add(c.at), Text: "device offline error, dev sda, sector 2097144 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"})
		if due := tr.ProofDue(now); due != c.due {
			t.Errorf("%s: a proof is due: %v", name, due)
		}
	}
}

// TestProofIsBounded: a drive that fails is not read without end, nor often.
func TestProofIsBounded(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	tr.Drive.Size = 64 << 20
	bad, now := map[int64]bool{}, m.state.Machine.Now()
	for s := int64(0); s < 64<<11; s += 1024 {
		bad[s] = true
		m.poll.AddLogLine(host.LogLine{At: now, Text: fmt.Sprintf("critical medium error, dev sda, sector %d op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", s)})
	}
	d := &badDisk{bad: bad}
	var last time.Time
	for range 20 {
		prove(tr, d, now)
		if wait := tr.NextProof.Sub(now); wait < last.Sub(now) || wait > kernellog.ProofRarest {
			t.Errorf("the next proof is after %v", wait)
		}
		last = tr.NextProof
	}
	if d.reads > 20*2*kernellog.ProofFaults {
		t.Errorf("%d reads in 20 looks", d.reads)
	}
	if tr.NextProof.Sub(now) != kernellog.ProofRarest {
		t.Errorf("the next proof is after %v", tr.NextProof.Sub(now))
	}
}

// TestLineOfTheDiskBefore: what has a disk open that went goes on failing, under an address
// that another drive has by now.
func TestLineOfTheDiskBefore(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	tr.Drive.Paths = append(tr.Drive.Paths, drivebay.Path{Address: "1:0:0:0"})
	tr.Kernlog = kernellog.Window{}
	m.poll.AddLogLine(host.LogLine{At: m.state.Machine.Now(), Text: "sd 1:0:0:0: [sdx] rejecting I/O to dead device"})
	if len(tr.Kernlog.Errors) != 0 {
		t.Error("an error of the disk before is one of the drive that is there")
	}
	m.poll.AddLogLine(host.LogLine{At: m.state.Machine.Now(), Text: "sd 1:0:0:0: [sda] rejecting I/O to offline device"})
	m.poll.AddLogLine(host.LogLine{At: m.state.Machine.Now(), Text: "sd 1:0:0:0: rejecting I/O to offline device"})
	if len(tr.Kernlog.Errors) != 2 {
		t.Errorf("%d errors of its own", len(tr.Kernlog.Errors))
	}
}
