//go:build lab

package suite

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// TestLabReplicationPowerCut: a machine loses its power while it writes to a replicated volume and its network is dead, the other takes
// over with every record that was acknowledged, and the first comes back.
func TestLabReplicationPowerCut(t *testing.T) {
	t.Parallel()
	newReplicaPair(t).powerCut("data-c", "C")
}

// TestLabLongReplicationPowerCut: with protocol A, the records of the last moments are lost, and the side that takes over says since when. A side
// that wrote alone before its power went has data that the other one has not: a split brain.
func TestLabLongReplicationPowerCut(t *testing.T) {
	t.Parallel()
	p := newReplicaPair(t)
	p.powerCut("data-a", "A")
	p.splitBrain("data-a")
	p.bothGone("data-a", p.a, p.b)
	p.bothGone("data-a", p.b, p.a)
}

func (p *replicaPair) powerCut(name, protocol string) {
	a, b := p.a, p.b
	p.enable(name, 7800, protocol)
	a.stage(name)
	a.write()
	time.Sleep(time.Second)

	// Frames are lost in both directions; neither side knows yet.
	sent := a.acknowledged()
	p.cable.Lose(1, 2, true)
	p.cable.Lose(2, 1, true)
	time.Sleep(time.Second)
	early := a.acknowledged()
	time.Sleep(2 * time.Second)
	last := a.acknowledged()
	silent := time.Now()
	a.PowerCut()
	if waits := early == last; waits != (protocol == "C") {
		p.Errorf("protocol %s: %d records acknowledged when the network died, %d a second later, %d after three", protocol, sent, early, last)
	}
	p.cable.Lose(1, 2, false)
	p.cable.Lose(2, 1, false)

	took := b.until(name, "without its peer", time.Minute, func(i api.ReplicatedVolume) bool { return !i.Connected })
	p.Logf("protocol %s: b knows after %v that a is gone", protocol, took.Round(time.Second))
	if synced := b.info(name).LastSync; synced.After(silent.Add(took+5*time.Second)) || synced.IsZero() {
		p.Errorf("last sync %v, the network died before %v", synced, silent)
	}
	have := p.takeOver(name)
	switch {
	case protocol == "C" && have < last:
		p.Errorf("%d records were acknowledged, %d are on the other side", last, have)
	case protocol == "A" && (have >= last || have < sent-20):
		p.Errorf("protocol A: of %d records, %d before the network died, %d are on the other side", last, sent, have)
	}
	p.Logf("protocol %s: %d records acknowledged when the network died, %d when the power went, %d on the other side", protocol, sent, last, have)

	// a was not primary without its peer: it comes back as the secondary, without a command.
	a.boot()
	a.until(name, "the secondary, and ready", time.Minute, func(i api.ReplicatedVolume) bool { return ready(i) && i.Role == "secondary" })
	p.failBack(name, have)
}

// takeOver makes b primary without a, writes there, and returns how many records it has.
func (p *replicaPair) takeOver(name string) (have int) {
	p.b.do("replication promote %s --force --yes --secret-file %s", name, runbookSecret)
	p.b.stage(name)
	have = p.b.records()
	p.b.Sh("echo kept >%s/alone-b; sync", runbookStage)
	return have
}

// failBack makes a primary again, which has what b has.
func (p *replicaPair) failBack(name string, have int) {
	p.b.unstage(name)
	p.b.do("replication demote %s --secret-file %s", name, runbookSecret)
	p.a.do("replication promote %s --secret-file %s", name, runbookSecret)
	p.a.stage(name)
	if got := p.a.records(); got != have {
		p.Errorf("%d records after the failback, %d before", got, have)
	}
	p.a.Sh("grep kept %s/alone-b", runbookStage)
	p.a.unstage(name)
}

// bothGone cuts the power of both sites under a writer. Both have their roles again, whichever comes back first.
func (p *replicaPair) bothGone(name string, first, second *replicaSite) {
	p.a.stage(name)
	p.a.write()
	last := p.a.acknowledged()
	first.PowerCut()
	second.PowerCut()
	first.boot()
	second.boot()
	for s, role := range map[*replicaSite]string{p.a: "primary", p.b: "secondary"} {
		s.until(name, "ready as the "+role, time.Minute, func(i api.ReplicatedVolume) bool { return ready(i) && i.Role == role })
	}
	p.a.stage(name)
	if have := p.a.records(); have < last {
		p.Errorf("%d records were acknowledged before the power of both sites went, %d are there", last, have)
	}
	p.a.unstage(name)
}

// splitBrain lets a write alone before its power goes, and b be promoted.
func (p *replicaPair) splitBrain(name string) {
	a, b := p.a, p.b
	a.stage(name)
	a.write()
	p.cable.Lose(1, 2, true)
	p.cable.Lose(2, 1, true)
	b.until(name, "without its peer", time.Minute, func(i api.ReplicatedVolume) bool { return !i.Connected })
	p.goesOn("the network is dead")
	a.PowerCut()
	p.cable.Lose(1, 2, false)
	p.cable.Lose(2, 1, false)
	have := p.takeOver(name)

	a.boot()
	b.until(name, "a split brain", time.Minute, func(i api.ReplicatedVolume) bool { return i.State == "split brain" })
	a.until(name, "a split brain, or refused by b which knows", time.Minute, func(i api.ReplicatedVolume) bool {
		return i.State == "split brain" || i.Conflict == string(drivebay.RefusedByPeer)
	})
	p.Logf("a says: %+v", a.info(name))
	a.do("replication demote %s --secret-file %s", name, runbookSecret)
	a.do("replication resync %s --force --yes --secret-file %s", name, runbookSecret)
	b.do("replication promote %s --secret-file %s", name, runbookSecret)
	for _, s := range []*replicaSite{a, b} {
		s.until(name, "ready", time.Minute, ready)
	}
	p.failBack(name, have)
}
