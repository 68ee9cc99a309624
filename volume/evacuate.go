package volume

import (
	"context"

	"github.com/drivebay/drivebay"
)

// What can move off a drive that has to leave, moves; follow asks for it beside
// every round.

// moveGroups moves the volume groups of a leaving drive onto others, while they are
// used. It does not wait for the end. What a group waits for is told by its name.
func (e *Engine) moveGroups(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive) (waits map[string]string) {
	return nil
}
