// Package browser is `drivebay ui`: it serves the page of a daemon to a browser on this machine.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/ui"
	"github.com/spf13/cobra"
)

// Command returns `drivebay ui` for a daemon at an address.
func Command(api *string, out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ui", Short: "Show the drives in a browser", Args: cobra.NoArgs,
		Long: "Serves the page on a port of this machine, and prints a link that can be opened once, within\n" +
			"10 minutes. The page shows the racks, why a drive has its health, and the steps of a replacement.\n" +
			"It ends with this command. docs/page.md describes it.\n\n" +
			"From another machine: choose a port, and forward it with `ssh -L 7411:127.0.0.1:7411 SERVER`.",
		Example: "  drivebay ui\n  drivebay ui --port 7411",
	}
	port := cmd.Flags().Int("port", 0, "port of 127.0.0.1; 0: any that is free")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := Listen(cmd.Context(), *api, cmd.CommandPath(), *port)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "open this link once, within 10 minutes:\n  %s\nthe page ends with this command (ctrl-c)\n", f.Link()); err != nil {
			return err
		}
		return f.Serve(cmd.Context())
	}
	return cmd
}

// Forward passes the requests of a browser to the socket of the daemon.
type Forward struct {
	listener net.Listener
	gate     *ui.Gate
}

// Listen opens a port of this machine before the unix socket of a daemon. command is what a person runs for another link.
func Listen(ctx context.Context, api, command string, port int) (*Forward, error) {
	socket, ok := strings.CutPrefix(api, "unix://")
	if !ok {
		return nil, fmt.Errorf("%s: the page is served on the unix socket of the daemon only: run `drivebay ui` on that machine", api)
	}
	conn, err := net.DialTimeout("unix", socket, dialTime)
	if err != nil {
		return nil, fmt.Errorf("no daemon answers at %s: %w", api, err)
	}
	_ = conn.Close()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("port %d: %w: choose another one with --port", port, err)
	}
	return &Forward{l, ui.NewGate(l.Addr().String(), command, time.Now, proxy(socket))}, nil
}

const dialTime = 2 * time.Second

// Link returns the link that opens the page, once.
func (f *Forward) Link() string { return f.gate.Link() }

// Serve answers until ctx ends.
func (f *Forward) Serve(ctx context.Context) error {
	srv := &http.Server{Handler: f.gate, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 32 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	return nil
}

// proxy passes requests to a unix socket.
func proxy(socket string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "drivebay", "drivebay"
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", socket)
		}},
		FlushInterval: -1, // the stream of the state
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // the page says that the connection is lost
		},
	}
}
