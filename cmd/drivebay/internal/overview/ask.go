package overview

import (
	"context"
	"errors"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// AskTime is how long the daemon may take to answer: it reads no drive for that.
const AskTime = 10 * time.Second

// startingTime is the same for the lists while the daemon is not ready.
const startingTime = 2 * time.Second

// Ask reads everything for an overview from the daemon.
func Ask(ctx context.Context, client *api.Client) (st api.Status, in Input, err error) {
	soon, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	if st, err = client.Status(soon); err != nil {
		return st, in, err
	}
	in.NotReady, in.Unread, in.Unwritten, in.Config = st.Reasons, st.Unread, st.Unwritten, st.Config
	in.Replication = st.Replication
	if !st.Ready() { // it answers the other calls once the drives are listed; the reasons say what is missing
		soon, cancel = context.WithTimeout(ctx, startingTime)
		defer cancel()
	}
	if in.Drives, err = client.Drives(soon); err == nil {
		in.Volumes, err = client.Volumes(soon)
	}
	if errors.Is(err, drivebay.ErrNoSupport) || !st.Ready() && ctx.Err() == nil {
		err = nil
	}
	return st, in, err
}
