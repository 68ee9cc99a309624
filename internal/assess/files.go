package assess

import (
	"errors"
	"runtime"
	"sync"

	"github.com/drivebay/drivebay/internal/health"
)

// Subject is one drive of a recorded machine.
type Subject struct {
	Name   string // kernel name; the verdict's file is "dir:name"
	Serial string // of the machine's inventory, where the evidence has none
	Model  string
	Input  health.Input
}

// Options is what judging needs beside the files.
type Options struct {
	Thresholds health.Thresholds
	// Recording reads the drives of a folder that holds a recorded machine. Nil:
	// such folders are walked like any other.
	Recording func(dir string) ([]Subject, error)
}

// Files judges every document below the paths and hands out the verdicts in the
// order of the input, however many are decoded at a time. What cannot be read is
// a verdict with an error, not the end; only an error of emit ends it early.
func Files(paths []string, opt Options, emit func(Verdict) error) error {
	p := newPipe(opt)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(p.work)
	}
	workers.Go(func() {
		r := reader{opt: opt, put: p.put}
		for _, path := range paths {
			if r.path(path) != nil { // stopped
				break
			}
		}
		p.close()
	})
	err := p.drain(emit)
	workers.Wait()
	return err
}

// item is one document on its way; either data, a subject or an error is set.
type item struct {
	file    string
	data    []byte
	kind    kind
	subject *Subject
	err     error
}

// job is a run of documents that one worker decodes.
type job struct {
	items []item
	out   chan []Verdict
}

// Limits of a job: small enough to keep the workers busy and the memory low.
const (
	jobItems = 32
	jobBytes = 256 << 10
	ahead    = 8 // jobs decoded before their turn
)

// pipe keeps the order: every job goes to the workers and, at once, into the
// queue in which the verdicts are handed out.
type pipe struct {
	opt     Options
	pending job
	bytes   int
	jobs    chan job
	order   chan job
	stop    chan struct{}
}

func newPipe(opt Options) *pipe {
	return &pipe{opt: opt, jobs: make(chan job, ahead), order: make(chan job, ahead), stop: make(chan struct{})}
}

var errStopped = errors.New("stopped")

// put takes one document; the reader stops when it fails.
func (p *pipe) put(it item) error {
	p.pending.items = append(p.pending.items, it)
	p.bytes += len(it.data)
	if len(p.pending.items) < jobItems && p.bytes < jobBytes {
		return nil
	}
	return p.flush()
}

func (p *pipe) flush() error {
	if len(p.pending.items) == 0 {
		return nil
	}
	j := p.pending
	j.out = make(chan []Verdict, 1)
	p.pending, p.bytes = job{}, 0
	for _, to := range []chan job{p.order, p.jobs} {
		select {
		case to <- j:
		case <-p.stop:
			return errStopped
		}
	}
	return nil
}

func (p *pipe) close() {
	// A flush that fails was stopped: then nobody waits for the rest.
	_ = p.flush()
	close(p.order)
	close(p.jobs)
}

func (p *pipe) work() {
	for j := range p.jobs {
		out := make([]Verdict, len(j.items))
		for i, it := range j.items {
			out[i] = it.verdict(p.opt.Thresholds)
		}
		j.out <- out
	}
}

func (p *pipe) drain(emit func(Verdict) error) error {
	for j := range p.order {
		for _, v := range <-j.out {
			if err := emit(v); err != nil {
				close(p.stop)
				return err
			}
		}
	}
	return nil
}
