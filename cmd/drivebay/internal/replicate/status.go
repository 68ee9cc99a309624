package replicate

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/named"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// Row is a replicated volume with what to do next.
type Row struct {
	api.ReplicatedVolume
	Next string `json:"next,omitempty"` // with its command in backquotes
}

// List is what `drivebay replication status` prints.
type List struct {
	Missing string `json:"missing,omitempty"` // why this machine cannot replicate volumes
	Volumes []Row  `json:"volumes"`
}

func (p Program) status() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [VOLUME]", Short: "Show how volumes are replicated, and what to do next", Args: cobra.MaximumNArgs(1),
		Long:    "Shows the replicated volumes, or one: the role of this side, the state, the peer, when both sides were last\nknown to have the same data, and the next command. It also says what this machine lacks to replicate\nvolumes. With -x it prints only what is wrong, one line each, and the exit status is:\n" + p.ExitStatuses,
		Example: "  drivebay replication status\n  drivebay replication status data-1\n  drivebay replication status -o json",
	}
	print := p.Output(cmd, "table", "json", "yaml")
	short := cmd.Flags().BoolP("wrong", "x", false, "print only what is wrong, one line each, and set the exit status")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := p.list(cmd.Context(), args)
		switch {
		case *short && err == nil:
			return p.Wrong(wrong(list), "replicated volumes", func(overview.Item) bool { return true })
		case *short:
			return p.CannotTell(err)
		case err != nil:
			return err
		}
		return print(list, func(s render.Style) string { return draw(list, s) })
	}
	return cmd
}

func (p Program) list(ctx context.Context, args []string) (List, error) {
	list := List{Volumes: []Row{}}
	client, err := p.Client()
	if err != nil {
		return list, err
	}
	if len(args) == 1 {
		set, err := client.Volumes(ctx)
		if err != nil {
			return list, err
		}
		v, err := named.Volume(set, args[0], false)
		if err != nil {
			return list, err
		}
		one, err := api.ReplicationClient{Client: client}.Of(ctx, v.ID)
		list.Volumes = append(list.Volumes, Row{one, next(&one)})
		return list, err
	}
	all, err := api.ReplicationClient{Client: client}.List(ctx)
	list.Missing = all.Missing
	for _, v := range all.Volumes {
		list.Volumes = append(list.Volumes, Row{v, next(&v)})
	}
	return list, err
}

// next says what a person does next; empty: nothing.
func next(v *api.ReplicatedVolume) string {
	name := cmp.Or(v.Name, v.Volume)
	do := func(verb, more string) string {
		return fmt.Sprintf("`drivebay replication %s %s%s --secret-file FILE`", verb, name, more)
	}
	switch {
	case v.State == "ended":
		return fmt.Sprintf("enable it again with the role target, or use its data as they are: `drivebay volume accept-loss %s --yes`", name)
	case v.Conflict == string(drivebay.UnrelatedData):
		return "on the side whose data are to be discarded: " + do("disable", "") + ", then enable it with the role target"
	case v.Conflict == string(drivebay.PeerTooSmall):
		return fmt.Sprintf("on the other side: `drivebay volume expand %s SIZE` and ", name) + do("resync", "") + "; then here: " + do("promote", "")
	case v.Conflict == string(drivebay.RefusedByPeer):
		return fmt.Sprintf("on the other machine: `drivebay replication status %s`", name)
	case v.Status == "error" && v.Role == "primary":
		return "on the side whose data are to be discarded: " + do("demote", "") + " and " + do("resync", " --force --yes") + "; then on the other side: " + do("promote", "")
	case v.Status == "error":
		return "to discard the data of this side: " + do("resync", " --force --yes") + "; then on the other side: " + do("promote", "")
	case v.Status != "degraded" || v.Connected:
		return ""
	case v.Role == "secondary":
		return "if the other machine is up: " + do("resync", "")
	}
	return "if the other machine is up: " + do("promote", "") + " here, and " + do("resync", "") + " there"
}

func outOfSync(v *Row) string {
	if v.OutOfSync == 0 {
		return "-"
	}
	return render.Binary(v.OutOfSync)
}

func lastSync(v *Row, s render.Style) string {
	if v.LastSync.IsZero() {
		return "-"
	}
	return drivebay.DurationText(s.Now.Sub(v.LastSync)) + " ago"
}

func draw(list List, s render.Style) string {
	var b strings.Builder
	rows := make([][]string, len(list.Volumes))
	for i := range list.Volumes {
		v := &list.Volumes[i]
		rows[i] = []string{cmp.Or(v.Name, v.Volume), v.Role, v.State, peer(v.Peer), v.Protocol, lastSync(v, s), outOfSync(v), v.Message}
	}
	if len(rows) > 0 {
		b.WriteString(render.Table([]string{"VOLUME", "ROLE", "STATE", "PEER", "PROTOCOL", "LAST SYNC", "OUT OF SYNC", "MESSAGE"}, rows, s))
	} else {
		b.WriteString("no volume is replicated\n")
	}
	for _, v := range list.Volumes {
		if v.Next != "" {
			fmt.Fprintf(&b, "next, %s: %s\n", render.Clean(cmp.Or(v.Name, v.Volume)), render.Clean(v.Next))
		}
	}
	if list.Missing != "" {
		b.WriteString("missing: " + render.Clean(list.Missing) + "\n")
	}
	return b.String()
}

// verdicts on the statuses of a replication. A split brain is data at risk: one side's are going to be discarded.
var verdicts = map[string]overview.Verdict{"healthy": overview.Fine, "degraded": overview.Degraded, "error": overview.AtRisk}

// wrong returns what is wrong with the replication of volumes.
func wrong(list List) overview.Overview {
	var o overview.Overview
	for _, v := range list.Volumes {
		verdict, known := verdicts[v.Status]
		if !known {
			verdict = overview.CannotTell
		}
		if verdict != overview.Fine {
			o.Wrong = append(o.Wrong, overview.Item{Kind: "volume", ID: v.Volume, Name: v.Name, Verdict: verdict, State: strings.ToUpper(v.State), Text: v.Message, Next: v.Next})
		}
	}
	if list.Missing != "" && len(list.Volumes) > 0 {
		o.Wrong = append(o.Wrong, overview.Item{Kind: "machine", Verdict: overview.Degraded, State: "MISSING", Text: list.Missing})
	}
	return o
}

// peer is the address of the other side; it is not known of a volume whose record was lost.
func peer(a netip.AddrPort) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
