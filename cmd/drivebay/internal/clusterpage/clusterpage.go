// Package clusterpage serves the page of a cluster: the nodes and drives that its objects show. It only reads: the page shows
// the commands, which work with the rights of the person who runs them.
package clusterpage

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/kubectl"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/page"
	"github.com/drivebay/drivebay/internal/ui"
)

// Source is what is known of a cluster.
type Source interface {
	// Version grows with everything that is known.
	Version() uint64
	Snapshot() *drivebay.Snapshot
	Volumes() *drivebay.VolumeSet
	Machines() map[string]*drivebay.Hardware
	Down() map[string]string
	// Heard returns when the API server has last listed the objects, and why it does not now; "": it does. refused: it answers,
	// and does not show them to the account of this program.
	Heard() (at time.Time, why string, refused bool)
}

// New returns the page of a cluster, served by this version of the program since it was started. stopping ends its streams.
func New(src Source, version string, started time.Time, stopping <-chan struct{}) *ui.Page {
	input := func() page.ClusterInput {
		in := page.ClusterInput{Drives: src.Snapshot(), Volumes: src.Volumes(), Machines: src.Machines(), Down: src.Down(), Started: started, Version: version, Now: time.Now()}
		in.Heard, in.Away, in.Refused = src.Heard()
		return in
	}
	return ui.New(ui.Options{
		Version: src.Version, Words: kubectl.Words, Stopping: stopping,
		State: func() ui.State {
			head, nodes := page.OfCluster(input())
			s := ui.State{Head: head}
			for _, n := range nodes {
				s.Parts = append(s.Parts, ui.Part{Key: n.Name, Of: n})
			}
			return s
		},
		Drive: func(id string) any {
			if d := page.OfClusterDrive(input(), id); d != nil {
				return d
			}
			return nil
		},
	})
}
