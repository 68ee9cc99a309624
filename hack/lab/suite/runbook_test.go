//go:build lab

package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

const (
	runbookSecret = "/etc/drivebay/replication.secret"
	runbookStage  = "/var/lib/kubelet/stage"
)

// runbookSite is one of the two machines of docs/replication.md, with its daemon.
type runbookSite struct {
	*lab.Machine
	t      *testing.T
	daemon *lab.Daemon
}

func newRunbookSite(t *testing.T, cable *machine.Link, n uint64) *runbookSite {
	s := &runbookSite{Machine: lab.Start(t, machine.Spec{Link: cable, Drives: []machine.Drive{runbookDrive(n)}}), t: t}
	s.Sh("mkdir -p /etc/drivebay %s && umask 077 && echo %s >%s", runbookStage, drbdSecret, runbookSecret)
	s.daemon = s.Daemon("claim: all\ncsiEndpoint: unix:///run/drivebay/csi.sock\nreplacement: {trigger: off}\n")
	return s
}

func runbookDrive(n uint64) machine.Drive {
	drive := scsi(fmt.Sprintf("SITE%d", n), 0x5000c500b0000000+n)
	drive.Size = 512 << 20
	return drive
}

// use mounts the volume as a kubelet does, runs a command in it, and unmounts it.
func (s *runbookSite) use(command string) {
	s.t.Helper()
	id := s.Sh("drivebay volumes -o 'jsonpath={.volumes[0].id}'")
	csi := "CSI_ENDPOINT=unix:///run/drivebay/csi.sock drivebay csi "
	s.Sh("%sNodeStageVolume '%s'", csi, fmt.Sprintf(`{"volume_id":"%s","staging_target_path":"%s","volume_capability":{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}}`, id, runbookStage))
	s.Sh("cd %s && %s && sync", runbookStage, command)
	s.Sh("%sNodeUnstageVolume '%s'", csi, fmt.Sprintf(`{"volume_id":"%s","staging_target_path":"%s"}`, id, runbookStage))
}

func knowsSplit(s *runbookSite) bool {
	return strings.Contains(s.Sh("drivebay replication status data-1"), "split brain")
}

var (
	runbookBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	runbookLine  = regexp.MustCompile(`^([ab])\$ (drivebay .*)$`)
)

// run repeats a command until it succeeds and prints the lines of the page in their order: each command is idempotent.
func (s *runbookSite) run(command string, lines []string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		out := s.Output(command + " 2>&1; echo status $?")
		rest := strings.Split(out, "\n")
		missing := ""
		for _, want := range append(lines, "status 0") {
			var parts []string
			for part := range strings.SplitSeq(strings.Join(strings.Fields(want), " "), "...") {
				parts = append(parts, regexp.QuoteMeta(strings.TrimSpace(part)))
			}
			pattern := "^" + strings.Join(parts, ".*") + "$"
			i := 0
			for i < len(rest) && !regexp.MustCompile(pattern).MatchString(strings.Join(strings.Fields(rest[i]), " ")) {
				i++
			}
			if i == len(rest) {
				missing = want
				break
			}
			rest = rest[i+1:]
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: not printed: %q\n%s\n%s", command, missing, out, s.Output("cat /proc/drbd; dmesg | grep drbd | tail -30"))
		}
	}
}

// replicationPage is docs/replication.md.
func replicationPage(t *testing.T) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/replication.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestLabReplicationRunbook runs the commands of docs/replication.md on two machines with the kernel's DRBD and a cable between
// them, and looks at the files in the volume after each failover.
func TestLabReplicationRunbook(t *testing.T) {
	t.Parallel()
	cable := machine.NewLink()
	sites := map[string]*runbookSite{"a": newRunbookSite(t, cable, 1), "b": newRunbookSite(t, cable, 2)}
	a, b := sites["a"], sites["b"]
	before := map[string]func(){
		"Planned failover": func() { a.use("echo one >from-a") },
		"Failback":         func() { b.use("grep one from-a && echo two >from-b") },
		"Unplanned failover": func() {
			a.use("grep two from-b && echo three >again-a")
			a.Must(a.SetLink(t.Context(), false))
		},
		"Split brain": func() { // both write without the other one
			b.use("grep three again-a && echo kept >alone-b")
			a.use("echo lost >alone-a")
			a.Must(a.SetLink(t.Context(), true))
			for !knowsSplit(a) { // the page shows the side that looked first
				if knowsSplit(b) {
					b.Sh("drivebay replication promote data-1 --secret-file %s", runbookSecret)
				}
				time.Sleep(2 * time.Second)
			}
		},
		"When a drive fails": func() {
			a.Must(a.Unplug(t.Context(), "SITE1"))
			a.Must(a.Plug(t.Context(), runbookDrive(3)))
		},
		"Disable": func() { b.use("grep kept alone-b && test ! -e alone-a && echo last >last-b") },
	}
	addresses := strings.NewReplacer("10.0.0.1", "10.77.0.1", "10.0.0.2", "10.77.0.2")
	commands := 0
	for _, section := range strings.Split(replicationPage(t), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		if happens, is := before[title]; is {
			happens()
			delete(before, title)
		}
		for _, block := range runbookBlock.FindAllStringSubmatch(section, -1) {
			var on, command string
			var lines []string
			run := func() {
				if command != "" {
					commands++
					sites[on].run(addresses.Replace(command), lines)
				}
			}
			for line := range strings.Lines(block[1]) {
				line = strings.TrimSpace(line)
				if m := runbookLine.FindStringSubmatch(line); m != nil {
					run()
					on, command, lines = m[1], m[2], nil
				} else if line != "..." {
					lines = append(lines, addresses.Replace(line))
				}
			}
			run()
		}
	}
	if commands < 25 || len(before) > 0 {
		t.Errorf("%d commands found; sections that were not: %v", commands, before)
	}
	a.use("grep last last-b")
	for _, s := range sites {
		if all := s.Output("dmesg; cat /proc/[0-9]*/cmdline | tr '\\0' ' '") + s.daemon.Log(); strings.Contains(all, drbdSecret) {
			t.Error("the secret is readable")
		}
	}
}
