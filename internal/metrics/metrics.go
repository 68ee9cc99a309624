// Package metrics exports a snapshot to Prometheus. Every series of a drive has the label
// drive, its id; drivebay_drive_info joins that to model, serial, path, bay and server. Every series
// of a volume has the label volume; drivebay_volume_info has its name, drivebay_volume_drive
// the drives that it is on.
//
// The tables of this package are written to the page directly: a Prometheus registry
// sorts, hashes and checks each of the seven thousand series of a hundred drives, and takes ten
// times as long as a scrape may. The type page prevents the faults that a registry would find. The metrics of the Go runtime and the process come from a registry.
package metrics

import (
	"net/http"
	"runtime"

	"github.com/drivebay/drivebay"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Source is the part of the drive manager that the metrics need.
type Source interface {
	Snapshot() *drivebay.Snapshot
}

// Volumes is the part of the volume engine that the metrics need.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
}

// Handler serves the metrics of the newest snapshot, of the volumes (unless volumes is nil), of the other
// edges, and of this process. It accesses no drive.
func Handler(source Source, volumes Volumes, edges Edges, version, commit string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	process := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, ErrorHandling: promhttp.ContinueOnError})
	build := metric[*drivebay.Snapshot]{"build_info", "The program that runs.", gauge, []string{"version", "commit", "goversion"}, func(_ *drivebay.Snapshot, add emit) {
		add(1, version, commit, runtime.Version())
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain := r.Clone(r.Context())
		plain.Header.Del("Accept") // both parts of the page must have the same format
		process.ServeHTTP(w, plain)
		snap := source.Snapshot()
		p := page{text: make([]byte, 0, (len(snap.Drives)+1)*textPerDrive)}
		whole(&p, snap, build)
		p.drives(snap)
		if volumes != nil {
			p.volumes(volumes.Volumes())
		}
		p.edges(edges)
		_, _ = w.Write(p.text)
	})
}

func (p *page) drives(snap *drivebay.Snapshot) {
	for _, m := range snapshotMetrics {
		whole(p, snap, m)
	}
	all := make([]*drivebay.Drive, len(snap.Drives))
	for i := range snap.Drives {
		all[i] = &snap.Drives[i]
	}
	for _, m := range driveMetrics() {
		each(p, "drive", all, func(d *drivebay.Drive) string { return d.ID }, m)
	}
}

func (p *page) volumes(set *drivebay.VolumeSet) {
	for _, m := range setMetrics {
		whole(p, set, m)
	}
	for _, m := range volumeMetrics {
		each(p, "volume", set.Volumes, func(v *drivebay.VolumeView) string { return v.ID }, m)
	}
}

// emit adds one sample; the label values are in the order of the metric's labels.
type emit func(value float64, labels ...string)

// metric is one row of a table: a family of series and the function that reads its values.
type metric[T any] struct {
	name, help string
	kind       string
	labels     []string
	values     func(T, emit)
}

// textPerDrive is the approximate size of the text for a drive; with it the page rarely has to
// grow.
const textPerDrive = 12 << 10

const (
	gauge   = "gauge"
	counter = "counter"
)

// driveMetrics returns all rows about a drive.
func driveMetrics() (all []metric[*drivebay.Drive]) {
	for _, table := range [][]metric[*drivebay.Drive]{generalMetrics, ataMetrics, nvmeMetrics, scsiMetrics, kernelMetrics} {
		all = append(all, table...)
	}
	return all
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// number emits a value that may be absent.
func number[N ~int | ~uint64](add emit, n *N) {
	if n != nil {
		add(float64(*n))
	}
}
