package watch

import (
	"io/fs"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// statFiles is a machine with the counters of some block devices.
type statFiles struct {
	host.Worker
	stat map[string]string
}

func (m statFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := m.stat[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// TestLoadOfPaths: requests of a drive with several paths count where only its paths count them.
func TestLoadOfPaths(t *testing.T) {
	d := &drivebay.Drive{Name: "nvme0n1", Paths: []drivebay.Path{{Name: "nvme0c0n1"}, {Name: "nvme0c1n1"}}}
	e := &Watcher{Env: &env.Env{Machine: statFiles{stat: map[string]string{
		"sys/class/block/nvme0n1/stat":   "0 0 0 0 0 0 0 0 0 0 0",
		"sys/class/block/nvme0c0n1/stat": "10 0 80 50000 1 0 8 5000 0 20000 55000",
		"sys/class/block/nvme0c1n1/stat": "9 0 72 45000 0 0 0 0 0 31000 45000",
	}}}}
	is := e.loadOf(d)
	if want := (load{requests: 20, millis: 100000, busy: 31000}); is != want {
		t.Errorf("%+v, want %+v", is, want)
	}
	if got := (load{at: time.Unix(1, 0)}).await(is); got != 5*time.Second {
		t.Errorf("requests took %v", got)
	}
}

// TestAwait: a mean is made of many requests, or of those that kept the drive busy; not of one that waited for a disk to spin up.
func TestAwait(t *testing.T) {
	last := load{at: time.Unix(1, 0), requests: 100, millis: 1000, busy: 1000}
	for name, c := range map[string]struct {
		last, is load
		want     time.Duration
	}{
		"many":                {last, load{requests: 116, millis: 33000, busy: 1500}, 2 * time.Second},
		"few, one by one":     {last, load{requests: 112, millis: 61000, busy: 61000}, 5 * time.Second},
		"one, spinning up":    {last, load{requests: 101, millis: 13000, busy: 13000}, 0},
		"none":                {last, last, 0},
		"the first look":      {load{}, load{requests: 116, millis: 33000, busy: 1500}, 0},
		"a path was removed":  {last, load{requests: 116, millis: 33000, busy: 500}, 0},
		"the counters were 0": {last, load{requests: 16, millis: 500, busy: 10}, 0},
	} {
		if got := c.last.await(c.is); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
