package poll

import (
	"time"

	"github.com/drivebay/drivebay/drivemgr/internal/claims"
	"github.com/drivebay/drivebay/drivemgr/internal/selftests"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// Poller reads drives and assesses them.
type Poller struct {
	State     *state.State
	Claims    *claims.Claims
	SelfTests *selftests.Starter

	Slots      chan struct{} // bounds the readings under way
	Results    chan state.Reading
	ListAgain  bool              // content read from a drive requires another listing of its uses
	rereadDone []chan struct{}   // of the calls of AwaitReread
	unlisted   []host.LogLine    // about disks that are not listed yet, oldest first
	held       []host.LogLine    // about disks of attachedAt
	attachedAt map[string]uint64 // moments at which disks were attached since the last listing, by a name that a listed drive has
	logLost    time.Time         // when lines of the kernel log were lost last
}
