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
	Serial string // from the machine's inventory; used if the evidence has none
	Model  string
	Input  health.Input
}

// Options holds the thresholds and the reader of recordings.
type Options struct {
	Thresholds health.Thresholds
	// Recording reads the drives of a directory that holds a recorded machine. Nil: such
	// directories are read like any other.
	Recording func(dir string) ([]Subject, error)
}

// Files judges every document below the paths and passes the verdicts to emit in the order of the
// input, although several are decoded at a time. An unreadable document gives a verdict with an
// error; only an error of emit stops Files.
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

// item is one document to be judged; either data, a subject or an error is set.
type item struct {
	file    string
	data    []byte
	kind    kind
	subject *Subject
	err     error
}

// job is a batch of documents that one worker decodes.
type job struct {
	items []item
	out   chan []Verdict
}

// Limits of a job: small enough to use all workers and little memory.
const (
	jobItems = 32
	jobBytes = 256 << 10
	ahead    = 8 // jobs that may be decoded ahead of the output
)

// pipe keeps the order: it sends every job to the workers and, at the same time, to the queue from
// which drain emits the verdicts.
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

// put adds one document; the reader stops when put fails.
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
	// flush fails only after drain has stopped: then no verdict is needed any more.
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
