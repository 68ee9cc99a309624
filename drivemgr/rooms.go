package drivemgr

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

type fleetT struct {
	machine host.Machine
	keeper  *keeper
	log     *slog.Logger
	calls   chan call // functions for the owner's goroutine

	snapshot     atomic.Pointer[drivebay.Snapshot]
	unclaimBlock atomic.Pointer[func(drive string) string] // returns why a claim has to stay
	seqMu        sync.Mutex
	seqGrew      chan struct{} // closed and replaced when Seq grows
	looks        atomic.Uint64 // counts looks and changes to order them

	// The fields below belong to the goroutine of Run (or to Look, which has none).
	opt     Options
	drives  map[string]*tracked
	listing Listing
	listed  bool                    // there was a listing
	events  []drivebay.Event        // published with the next snapshot
	jobs    []func(context.Context) // to be started in goroutines: they may wait for a device
}

type lightsT struct {
	*fleetT

	lights lights
	// lightsRead is the moment of the last listing that read the enclosures.
	lightsRead uint64
}

type claimsT struct {
	*fleetT
	*lightsT
}

type selftestsT struct {
	*fleetT
}

type pollT struct {
	*fleetT
	*claimsT
	*selftestsT

	slots      chan struct{} // bounds the looks under way
	results    chan lookResult
	listAgain  bool            // content read from a drive requires another listing of its uses
	rereadDone []chan struct{} // of the calls of AwaitReread
}

type replacementT struct {
	*fleetT
	*lightsT

	// refresh lists the machine and reads every drive; listNow only lists it.
	refresh, listNow func(context.Context) error
	inventoried      bool // every present drive was read once
}

type trackingT struct {
	*fleetT
	*lightsT
	*claimsT
	*pollT
	*replacementT

	forgetBlock   atomic.Pointer[func(drive string) string] // returns why the record of a missing drive has to stay
	listings      chan Listing
	listedAt      time.Time // time of the last listing
	drivesChanged bool      // drives came or went since enclosures were read
}

// Manager tracks the drives of one machine.
type Manager struct {
	*fleetT
	*lightsT
	*claimsT
	*selftestsT
	*pollT
	*replacementT
	*trackingT

	// listingSince is when the listing under way began; zero without one.
	listingSince time.Time
	problems     []string // of the daemon: no uevents, no kernel log ...
	storeFails   string   // why the store cannot be written, as last reported
}
