// Package complete completes the arguments of commands in a shell: drives, volumes and snapshots, which it
// asks the daemon for, and kinds of events.
package complete

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/reference"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// completeTime is how long the completion of a word waits for the daemon. Without an answer it
// completes nothing.
const completeTime = time.Second

// completer asks a daemon.
type completer struct {
	client func() *api.Client // nil where no daemon is asked
}

// Add adds completion to a command and all below it, by the words for their arguments in Use, and to flags
// that name a drive, a volume, a snapshot or a kind of event. client returns nil where no daemon is asked.
func Add(cmd *cobra.Command, client func() *api.Client) { completer{client}.add(cmd) }

func (c completer) add(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.add(sub)
	}
	flags := map[string]completion{"drive": c.driveNames, "volume": c.volumeNames, "from-volume": c.volumeNames, "from-snapshot": c.snapshotNames, "lose": c.lossNames, "kind": eventKindNames}
	for name, names := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, completeFlag(names))
		}
	}
	if cmd.HasSubCommands() || cmd.ValidArgsFunction != nil {
		return
	}
	cmd.ValidArgsFunction = c.completeArgs(strings.Fields(cmd.Use)[1:])
}

// completion returns words with their descriptions, "word\tdescription".
type completion func(ctx context.Context) []string

// completeFlag completes the value of a flag; of a list, its last word.
func completeFlag(names completion) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		before := start[:strings.LastIndex(start, ",")+1]
		var out []string
		for _, word := range beginning(names, cmd, start[len(before):]) {
			out = append(out, before+word)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes each argument by its word in the usage of the command. FILE and PATH are
// completed by the shell.
func (c completer) completeArgs(words []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		i, again := len(args), strings.Contains(words[len(words)-1], "...")
		if i >= len(words) {
			if !again {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			i = len(words) - 1
		}
		word := strings.Trim(words[i], "[].")
		if word == "FILE" || word == "PATH" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return beginning(c.argument(word, args), cmd, start), cobra.ShellCompDirectiveNoFileComp
	}
}

// argument returns the completion of a word of a usage.
func (c completer) argument(word string, before []string) completion {
	switch word {
	case "DRIVE", "BAY|DRIVE", "BAY":
		return c.driveNames
	case "VOLUME":
		return c.volumeNames
	case "VOLUME|DRIVE":
		return func(ctx context.Context) []string { return append(c.volumeNames(ctx), c.driveNames(ctx)...) }
	case "SNAPSHOT":
		return c.snapshotNames
	case "ID":
		return c.foundVolumes
	case "CODE":
		return func(ctx context.Context) []string { return c.findingCodes(ctx, before[0]) }
	}
	if word == strings.ToLower(word) && strings.Contains(word, "|") { // fixed words, as on|off
		return func(context.Context) []string { return strings.Split(word, "|") }
	}
	return func(context.Context) []string { return nil }
}

// beginning returns the words that begin with what the user has typed, in any case.
func beginning(names completion, cmd *cobra.Command, start string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	var out []string
	for _, n := range names(ctx) {
		word, _, _ := strings.Cut(n, "\t")
		if len(word) >= len(start) && strings.EqualFold(word[:len(start)], start) {
			out = append(out, n)
		}
	}
	return out
}

// driveNames returns the names, bays and serials of the drives.
func (c completer) driveNames(ctx context.Context) []string {
	client := c.client()
	if client == nil {
		return nil
	}
	s, err := client.Drives(ctx)
	if err != nil {
		return nil
	}
	var names, bays, serials []string
	add := func(list *[]string, word, about string) {
		if word != "" {
			*list = append(*list, render.Clean(word)+"\t"+render.Clean(about))
		}
	}
	for _, d := range render.Order(s.Drives) {
		about := strings.Join(strings.Fields(fmt.Sprintf("%s %v %v", d.Model, d.Type, d.Health)), " ")
		add(&names, d.Name, about+place(&d))
		add(&serials, d.Serial, about+place(&d))
		if number := bayWord(s, &d); number != "" {
			add(&bays, number, d.Name+" "+about)
		}
	}
	return slices.Concat(names, bays, serials)
}

func place(d *drivebay.Drive) string {
	if d.Slot.Bay == "" {
		return ""
	}
	return ", bay " + d.Slot.Bay
}

// bayWord returns the shortest word for the bay of a drive that names this drive and no other.
func bayWord(s *drivebay.Snapshot, d *drivebay.Drive) string {
	number := strings.TrimLeft(d.Slot.Bay[strings.LastIndexByte(d.Slot.Bay, ' ')+1:], "0")
	for _, word := range []string{number, d.Slot.Bay} {
		if found, ok := s.Find(word); ok && found.ID == d.ID {
			return word
		}
	}
	return ""
}

func (c completer) volumeSet(ctx context.Context) *drivebay.VolumeSet {
	client := c.client()
	if client == nil {
		return new(drivebay.VolumeSet)
	}
	set, err := client.Volumes(ctx)
	if err != nil {
		return &drivebay.VolumeSet{}
	}
	return set
}

func (c completer) volumeNames(ctx context.Context) []string {
	var names, ids []string
	for _, v := range c.volumeSet(ctx).Volumes {
		names = append(names, render.Clean(v.Name)+"\t"+v.ID)
		ids = append(ids, v.ID+"\t"+render.Clean(v.Name))
	}
	return append(names, ids...)
}

func (c completer) snapshotNames(ctx context.Context) []string {
	var names, ids []string
	for _, s := range c.volumeSet(ctx).Snapshots {
		names = append(names, render.Clean(s.Name)+"\t"+s.ID)
		ids = append(ids, s.ID+"\t"+render.Clean(s.Name))
	}
	return append(names, ids...)
}

func (c completer) lossNames(ctx context.Context) []string {
	return append(c.volumeNames(ctx), c.snapshotNames(ctx)...)
}

func (c completer) foundVolumes(ctx context.Context) []string {
	var ids []string
	for _, f := range c.volumeSet(ctx).Found {
		ids = append(ids, f.ID+"\t"+render.Clean(f.Name))
	}
	return ids
}

func (c completer) findingCodes(ctx context.Context, drive string) []string {
	client := c.client()
	if client == nil {
		return nil
	}
	d, err := client.Drive(ctx, drive)
	if err != nil {
		return nil
	}
	var codes []string
	for _, f := range d.Findings {
		codes = append(codes, f.Code+"\t"+render.Clean(f.Text))
	}
	return codes
}

func eventKindNames(context.Context) []string {
	var names []string
	for _, k := range reference.EventKinds() {
		names = append(names, string(k))
	}
	return names
}
