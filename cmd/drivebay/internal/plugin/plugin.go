// Package plugin makes drivebay a plugin of kubectl: the commands of a node work on the drives and volumes of a cluster, with the
// rights of the person.
//
// It serves the API of the daemon from the objects of the cluster, on a socket of this process, and the commands ask
// there. So each command, each list and each explanation is the one of the node.
package plugin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/clusterpage"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/kubectl"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/kube/cluster"
	"github.com/spf13/cobra"
)

// Program is the name under which kubectl finds the program.
const Program = "kubectl-drivebay"

// Plugin is one run of the plugin.
type Plugin struct {
	opt     cluster.Options
	version string
	address *string // of the daemon, which the commands ask
	dir     string
	cluster *cluster.Cluster
	ended   chan error
	stop    context.CancelFunc
}

// New returns a plugin if the program was started under the name of one, else nil.
func New(program, version string) *Plugin {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != Program {
		return nil
	}
	return &Plugin{version: version, opt: cluster.Options{UserAgent: Program + "/" + version, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}}
}

// unconnected are the commands that ask no cluster.
var unconnected = []string{"version", "help"}

// own are flags of a node that the plugin has no use for.
var own = []string{"api", "local", "root", "why", "dry-run"}

const long = `Shows the drives and volumes of all nodes of a cluster, and changes them, with your own rights in
it. Nothing runs on the nodes for that: the commands read the objects Drive and Volume
(docs/kubernetes.md) and write what you request into the spec of a Drive; the node answers in
its status. Drives are named as kubectl does, ID.NODE; with --node a bay or a device is enough.
Without a command it shows the status.`

// Adapt makes the commands of a node those of the plugin; address is where they ask the daemon. A nil plugin changes
// nothing.
func (p *Plugin) Adapt(root *cobra.Command, address *string) {
	if p == nil {
		return
	}
	p.address = address
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: kubectl.Command}
	root.Short, root.Long = "Monitor the drives and volumes of a Kubernetes cluster", long
	f := root.PersistentFlags()
	f.StringVar(&p.opt.Kubeconfig, "kubeconfig", "", "configuration of kubectl; empty: $KUBECONFIG, else ~/.kube/config")
	f.StringVar(&p.opt.Context, "context", "", "context in the configuration of kubectl; empty: the current one")
	f.StringVarP(&p.opt.Node, "node", "N", "", "only the drives and volumes of this node")
	keep(root, func(c *cobra.Command) bool { _, ok := kubectl.Served[c.Name()]; return ok })
	for _, c := range root.Commands() {
		if subs := kubectl.Served[c.Name()]; subs != nil {
			keep(c, func(c *cobra.Command) bool { return slices.Contains(subs, c.Name()) })
		}
		c.Example = examples(c.Example)
	}
	hide(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range own {
			if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
				return fmt.Errorf("--%s works on a node only", name)
			}
		}
		if slices.Contains(unconnected, cmd.Name()) || cmd == root && cmd.Flags().Changed("version") {
			return nil
		}
		return p.start(cmd.Context(), cmd.Name())
	}
}

func keep(parent *cobra.Command, wanted func(*cobra.Command) bool) {
	for _, c := range parent.Commands() {
		if !wanted(c) {
			parent.RemoveCommand(c)
		}
	}
}

func hide(c *cobra.Command) {
	for _, name := range own {
		if flag := c.Flags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
		if flag := c.PersistentFlags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	for _, sub := range c.Commands() {
		hide(sub)
	}
}

// examples returns the examples that work on a cluster.
func examples(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && !slices.ContainsFunc(own, func(flag string) bool { return strings.Contains(line, " --"+flag) }) {
			out = append(out, strings.Replace(line, "drivebay ", kubectl.Command+" ", 1))
		}
	}
	return strings.Join(out, "\n")
}

// start reads the objects of the cluster and serves them as the daemon of a node serves its own.
func (p *Plugin) start(ctx context.Context, command string) (err error) {
	if p.cluster, err = cluster.Connect(ctx, p.opt); err != nil {
		return err
	}
	if command == "events" { // what other commands show of them is not all that they are for
		if err := p.cluster.ReadEvents(ctx); err != nil {
			return err
		}
	}
	if p.dir, err = os.MkdirTemp("", Program+"-"); err != nil {
		return err
	}
	socket := filepath.Join(p.dir, "api.sock")
	l, err := api.ListenUnix(socket)
	if err != nil {
		return err
	}
	server := api.New(p.cluster, api.Options{Volumes: p.cluster, Log: p.opt.Log})
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx)) // an interrupted command still asks
	if command == "ui" {
		p.cluster.Follow()
		server.MountLocal("/ui/", clusterpage.New(p.cluster, p.version, time.Now(), ctx.Done()))
	}
	p.ended = make(chan error, 1)
	go func() { p.ended <- server.Serve(ctx, l) }()
	*p.address = "unix://" + socket
	return nil
}

// Close ends what start began.
func (p *Plugin) Close() {
	if p == nil {
		return
	}
	if p.cluster != nil {
		p.cluster.Close()
	}
	if p.stop != nil {
		p.stop()
		<-p.ended
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // a socket in the folder of temporary files
	}
}

// Output returns a writer in which the commands of a node in a text are those of the plugin. A nil plugin changes nothing.
func (p *Plugin) Output(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return output{w}
}

type output struct{ io.Writer }

func (o output) Write(b []byte) (int, error) {
	if _, err := o.Writer.Write(kubectl.Words(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}
