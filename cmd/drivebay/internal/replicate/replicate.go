// Package replicate holds the commands about the replication of volumes to another machine.
package replicate

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/plan"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/secretfile"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/replication/parameters"
	"github.com/spf13/cobra"
)

// Printer prints a value in the format of -o, or as draw draws it.
type Printer func(value any, draw func(render.Style) string) error

// Program is what the commands need of the program.
type Program struct {
	In     io.Reader
	Client func() (*api.Client, error)
	Print  func(text string) error
	// Output adds -o to a command.
	Output func(cmd *cobra.Command, formats ...string) Printer
	// Usage returns an error in the command line.
	Usage func(format string, args ...any) error
	// UntilDone repeats a call while the work on a volume that it started continues.
	UntilDone func(ctx context.Context, client *api.Client, volume string, call func() error) error
	// DryRun prints what a command would do to a volume.
	DryRun func(ctx context.Context, called, id string, of plan.OfVolume) error
	// Wrong prints what is wrong, and returns the error with its exit status.
	Wrong func(o overview.Overview, what string, keep func(overview.Item) bool) error
	// CannotTell gives an error the exit status of a command that could not find out.
	CannotTell   func(error) error
	ExitStatuses string
}

// Command returns `drivebay replication`.
func Command(p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replication", Short: "Replicate volumes to another machine, and fail over",
		Long: "Replicates volumes to another machine with the DRBD of the kernel, and fails over. docs/replication.md is\nthe runbook. Each command is for one side: run its counterpart on the other machine.",
	}
	cmd.AddCommand(p.status(), p.enable(), p.promote(), p.demote(), p.resync(), p.disable())
	return cmd
}

// call is a command about one replicated volume.
type call struct {
	Program
	cmd    *cobra.Command
	secret string // --secret-file
	dry    bool   // --dry-run
	plan   plan.OfVolume
	// danger is why the command does nothing without --yes; empty: it needs none.
	danger func(called string) string
	yes    bool
	do     func(ctx context.Context, client *api.Client, id string, secret api.SharedSecret) (done string, err error)
}

// command makes the command of a call. prepare completes the call from the flags.
func (p Program) command(use, short, long, example string, prepare func(*call) error) *call {
	c := &call{Program: p, cmd: &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1)}}
	c.cmd.Flags().StringVar(&c.secret, "secret-file", "", "file with the secret that both sides share, which only its owner may read; - reads standard input")
	c.cmd.Flags().BoolVar(&c.dry, "dry-run", false, "print what the command would do, and change nothing")
	c.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := prepare(c); err != nil {
			return err
		}
		return c.run(cmd.Context(), args[0])
	}
	return c
}

// sure adds --yes to a command that can lose data.
func (c *call) sure(help string) { c.cmd.Flags().BoolVar(&c.yes, "yes", false, help) }

func (c *call) run(ctx context.Context, what string) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	set, err := client.Volumes(ctx)
	if err != nil {
		return err
	}
	v, err := named.Volume(set, what, c.danger != nil)
	if err != nil {
		return err
	}
	called := render.CalledVolume(&v.Volume)
	switch {
	case c.dry:
		return c.DryRun(ctx, called, v.ID, c.plan)
	case c.secret == "":
		return c.Usage("--secret-file is required")
	case c.danger != nil && !c.yes:
		return fmt.Errorf("%w: %s", drivebay.ErrRefused, c.danger(called))
	}
	secret, err := secretfile.Secret(c.secret, c.In)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	var done string
	err = c.UntilDone(ctx, client, v.ID, func() (err error) {
		done, err = c.do(ctx, client, v.ID, api.SharedSecret(secret))
		return err
	})
	if err != nil {
		return err
	}
	return c.Print(called + " " + done + "\n")
}

// flagNames replaces the names of parameters by those of the flags.
var flagNames = strings.NewReplacer("parameters: ", "", parameters.Local, "--local", parameters.Peer, "--peer",
	parameters.Protocol, "--protocol", parameters.Pair, "--pair", parameters.Rate, "--max-rate", parameters.Role, "--role")

func (p Program) enable() *cobra.Command {
	var local, peer, protocol, pair, rate, role string
	c := p.command("enable VOLUME", "Replicate a volume to another machine",
		"Replicates a volume to a volume of the same name on another machine. The volume must not be in use. The\nsame command is needed on the other machine, with the addresses the other way round and the other role.\nThe volume of the source keeps its data. The data of the target are replaced by those of the source:\nthat needs --yes and the full ID or name.",
		"  drivebay replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file /etc/drivebay/replication.secret",
		func(c *call) error {
			given := map[string]string{parameters.Local: local, parameters.Peer: peer, parameters.Protocol: protocol, parameters.Role: role}
			if pair != "" {
				given[parameters.Pair] = pair
			}
			if rate != "" {
				n, err := drivebay.ParseSize(rate)
				if err != nil {
					return c.Usage("--max-rate: %w", err)
				}
				given[parameters.Rate] = fmt.Sprint(n / 1024)
			}
			request, err := parameters.Parse(given)
			if err != nil {
				return c.Usage("%s", flagNames.Replace(err.Error()))
			}
			if !request.HoldsData {
				c.danger = func(called string) string {
					return fmt.Sprintf("the data of %s would be replaced by those of the peer; to replicate it as the target, add --yes", called)
				}
			}
			c.plan = plan.EnableReplication(request)
			c.do = func(ctx context.Context, client *api.Client, id string, secret api.SharedSecret) (string, error) {
				return "is replicated to " + request.Peer.String() + "; the same command is needed on the other machine, with the other role",
					api.ReplicationClient{Client: client}.Enable(ctx, id, api.ReplicationBody{Parameters: given, Secret: secret})
			}
			return nil
		})
	f := c.cmd.Flags()
	f.StringVar(&local, "local", "", "IP address and port of this machine for this volume; each volume needs a port of its own")
	f.StringVar(&peer, "peer", "", "IP address and port of the other machine for this volume")
	f.StringVar(&protocol, "protocol", "C", "C: a write ends when both machines have it; A: it ends when this machine has it, and an unplanned failover loses the last ones")
	f.StringVar(&pair, "pair", "", "what the two volumes are called together, the same on both machines; needed only if their names differ")
	f.StringVar(&rate, "max-rate", "", "limit of a resynchronization per second, such as 100MiB; empty: the default of the kernel")
	f.StringVar(&role, "role", "", "source: the data of this side are kept; target: they are replaced by those of the peer")
	c.sure("confirm that the data of the target are replaced")
	_ = c.cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"source", "target"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions([]string{"A", "C"}, cobra.ShellCompDirectiveNoFileComp))
	return c.cmd
}

// simple is a call that needs the secret only, and whether it is forced.
func simple(force *bool, done string, do func(api.ReplicationClient, context.Context, string, api.ReplicationCallBody) error) func(context.Context, *api.Client, string, api.SharedSecret) (string, error) {
	return func(ctx context.Context, client *api.Client, id string, secret api.SharedSecret) (string, error) {
		return done, do(api.ReplicationClient{Client: client}, ctx, id, api.ReplicationCallBody{Force: *force, Secret: secret})
	}
}

func (p Program) promote() *cobra.Command {
	var force bool
	c := p.command("promote VOLUME", "Let a volume be used on this side",
		"Makes this side primary: the volume can be used here, and not on the other side. Without --force the\nother side has to be demoted, and this side has to have all data. With --force, and --yes, the data of this\nside become the current ones, also if the other side does not answer: use it only if that machine is down,\nor is cut off and does not use the volume.",
		"  drivebay replication promote data-1 --secret-file /etc/drivebay/replication.secret\n  drivebay replication promote data-1 --force --yes --secret-file /etc/drivebay/replication.secret",
		func(c *call) error {
			if force {
				c.danger = func(called string) string {
					return fmt.Sprintf("%s would become primary here; writes that only the other side has would be lost when the two sides are synchronized again; if the other machine is down, add --yes", called)
				}
			}
			c.plan, c.do = plan.Promote(force), simple(&force, "is primary on this side", api.ReplicationClient.Promote)
			return nil
		})
	c.cmd.Flags().BoolVar(&force, "force", false, "declare the data of this side to be the current ones")
	c.sure("confirm that the other machine does not use the volume")
	return c.cmd
}

func (p Program) demote() *cobra.Command {
	return p.command("demote VOLUME", "Let a volume be used on the other side",
		"Makes this side secondary: the volume can be promoted on the other side, and is not mounted here, not\nread-only either. The volume must not be in use.",
		"  drivebay replication demote data-1 --secret-file /etc/drivebay/replication.secret",
		func(c *call) error {
			c.plan, c.do = plan.Demote, simple(new(bool), "is secondary on this side", api.ReplicationClient.Demote)
			return nil
		}).cmd
}

func (p Program) resync() *cobra.Command {
	var force bool
	c := p.command("resync VOLUME", "Connect a demoted volume to the other side again",
		"Connects a volume that is secondary here, for example after a failover. The kernel finds out which\nside missed what. After a split brain, when both sides were written without the other one, it refuses:\n--force, with --yes, discards what was written on this side alone.",
		"  drivebay replication resync data-1 --secret-file /etc/drivebay/replication.secret\n  drivebay replication resync data-1 --force --yes --secret-file /etc/drivebay/replication.secret",
		func(c *call) error {
			if force {
				c.danger = func(called string) string {
					return fmt.Sprintf("what was written to %s on this side alone would be lost; to take the data of the other side, add --yes", called)
				}
			}
			c.plan = plan.Resync(force)
			c.do = func(ctx context.Context, client *api.Client, id string, secret api.SharedSecret) (string, error) {
				ready, err := api.ReplicationClient{Client: client}.Resync(ctx, id, api.ReplicationCallBody{Force: force, Secret: secret})
				if ready {
					return "has the same data on both sides", err
				}
				return "connects to the other side: `drivebay replication status " + id + "` shows when both have the same data", err
			}
			return nil
		})
	c.cmd.Flags().BoolVar(&force, "force", false, "after a split brain, discard the data of this side")
	c.sure("confirm that the data of this side may be discarded")
	return c.cmd
}

func (p Program) disable() *cobra.Command {
	return p.command("disable VOLUME", "End the replication of a volume",
		"Gives the plain volume back, with the data of this side. The volume must not be in use. The other side\nneeds the same command.",
		"  drivebay replication disable data-1 --secret-file /etc/drivebay/replication.secret",
		func(c *call) error {
			c.plan, c.do = plan.DisableReplication, simple(new(bool), "is not replicated any more", api.ReplicationClient.Disable)
			return nil
		}).cmd
}
