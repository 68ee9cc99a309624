package watch

import (
	"errors"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// KeepKernelSaid records what the kernel said of filesystems and does not say again: the count of errors only
// while they are mounted (fs/ext4/sysfs.c), that one takes no writes only once.
func (e *Watcher) KeepKernelSaid() {
	for id, said := range e.kernelSaid() {
		_, err := e.Ledger.ChangeUnseen(id, func(r *drivebay.VolumeRecord) error {
			if r.Scrub == said.scrub { // a repair since then has ended the count
				r.FSErrors, r.GaveUp = said.errors, said.gaveUp
				r.LostWrites, r.LostAt = said.lostWrites, said.lostAt
			}
			return nil
		})
		if err != nil && !errors.Is(err, drivebay.ErrNotFound) { // the next tick tries again
			e.Log.Warn("what the kernel said of a filesystem not kept", "op", "watch", "volume", id, "err", err)
			return
		}
	}
}

// kernelSaid is what the kernel said of a filesystem, as a record keeps it.
type kernelSaid struct {
	errors uint64
	gaveUp string // mountOf
	scrub  *drivebay.Scrub

	lostWrites uint64
	lostAt     time.Time
}

// kernelSaid returns, by volume, what its record does not have yet. The calls that write it come later: one
// may wait for the store, and nothing may wait with ViewMu held.
func (e *Watcher) kernelSaid() map[string]kernelSaid {
	e.Inventory.ViewMu.Lock()
	defer e.Inventory.ViewMu.Unlock()
	out := map[string]kernelSaid{}
	for id, seen := range e.Views {
		was, fs := seen.Known.Record, seen.Known.fs
		m := e.Mounts.Counters.Of(id).Read()
		is := kernelSaid{errors: fs.errors, scrub: was.Scrub, lostWrites: m.LostWrites, lostAt: m.LostAt}
		if fs.gaveUp {
			if is.gaveUp = e.mountOf(seen.Staged.since); fs.shutdown && was.Volume.FSType != "xfs" {
				is.gaveUp += shutDown
			}
		}
		if was.FSErrors != is.errors || was.GaveUp != is.gaveUp || was.LostWrites != is.lostWrites {
			out[id] = is
		}
	}
	return out
}

// shutDown marks in a record that the filesystem has shut down, and not only become read-only. An XFS does nothing else.
const shutDown = " shut down"

// mountOf returns what tells a mount from all later ones: the boot, and when it was made.
func (e *Watcher) mountOf(since time.Time) string {
	return e.Mounts.Mirror.Boot() + " " + since.UTC().Format(time.RFC3339Nano)
}

// RecallKernelSaid takes what an earlier run has heard of filesystems that are mounted since.
func (e *Watcher) RecallKernelSaid() {
	for _, r := range e.Ledger.All() {
		p := mirror.StagedAt(&r.Volume)
		e.Mounts.Counters.Of(r.Volume.ID).Write(func(m *mounts.ProbeResult) { m.LostWrites, m.LostAt = r.LostWrites, r.LostAt })
		gaveUp, shut := strings.CutSuffix(r.GaveUp, shutDown)
		if gaveUp == "" || p == nil || gaveUp != e.mountOf(p.Since) {
			continue
		}
		shut = shut || r.Volume.FSType == "xfs"
		e.Mounts.Counters.Of(r.Volume.ID).Write(func(m *mounts.ProbeResult) {
			m.Shutdown, m.GaveUp = shut, !shut
		})
	}
}
