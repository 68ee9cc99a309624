package daemon

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// notifier reports the state of the daemon to the service manager (sd_notify(3)):
// datagrams of VAR=value lines to the socket that NOTIFY_SOCKET names.
type notifier struct{ socket string }

func newNotifier(getenv func(string) string) notifier {
	name := getenv("NOTIFY_SOCKET")
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:] // an abstract socket
	}
	return notifier{name}
}

func (n notifier) send(state string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", n.socket)
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}

// watchdog reports to the service manager that the daemon is alive, twice as often as
// the service manager requires, while alive returns true.
func (n notifier) watchdog(ctx context.Context, clock host.Clock, usec string, alive func() bool) {
	limit, err := strconv.ParseUint(usec, 10, 62)
	if n.socket == "" || err != nil || limit == 0 {
		return
	}
	for {
		select {
		case <-clock.After(time.Duration(limit) * time.Microsecond / 2):
			if alive() {
				_ = n.send("WATCHDOG=1") // the next one makes up for a lost one
			}
		case <-ctx.Done():
			return
		}
	}
}
