package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/daemon"
	"github.com/drivebay/drivebay/internal/hostsim"
)

const (
	siteRack          = "machine: site\nclaim: all\ndrives:\n  - {count: 2, kind: nvme, size: 20GB}\n"
	replicationSecret = "correct-horse"
)

// site is a daemon on a simulated machine, with a file that holds the secret.
type site struct {
	*testing.T
	*running
	machine *hostsim.Machine
	secret  string
}

func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	return siteOn(t, nil, args...)
}

// siteOn is a site on a machine that is there already; nil: on a new one.
func siteOn(t *testing.T, machine *hostsim.Machine, args ...string) *site {
	t.Helper()
	s := &site{T: t, machine: machine, secret: filepath.Join(t.TempDir(), "replication.secret")}
	rack := filepath.Join(t.TempDir(), "rack.yaml")
	write(t, rack, siteRack)
	if err := os.WriteFile(s.secret, []byte(replicationSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := "unix://" + shortDir(t) + "/csi"
	s.running = serveWith(t, func(a *app) {
		a.simulate = func(path string) (daemon.Simulated, error) {
			var err error
			if s.machine == nil {
				s.machine, err = hostsim.LoadFile(path)
			}
			return s.machine, err
		}
	}, append([]string{"--sim", rack, "--csi-endpoint", endpoint, "--log-level", "debug"}, args...)...)
	s.env["CSI_ENDPOINT"] = endpoint
	s.until("volumes")
	return s
}

// twoSites are two sites with a network between them.
func twoSites(t *testing.T, args ...string) (a, b *site, setUp func(bool)) {
	t.Helper()
	a, b = newSite(t, args...), newSite(t, args...)
	return a, b, hostsim.Join(a.machine, b.machine)
}

// do runs a command, which has to fail with want in its error, or to succeed if that is empty. The secret is in no output.
func (s *site) do(want, command string) string {
	s.Helper()
	out, errs, code := call(s.T, s.env, words(strings.ReplaceAll(command, "SECRET", s.secret))...)
	if (code == exitOK) != (want == "") || !strings.Contains(errs, want) {
		s.Fatalf("drivebay %s: exit status %d, want %q: %s%s", command, code, want, out, errs)
	}
	if strings.Contains(out+errs, replicationSecret) {
		s.Errorf("drivebay %s prints the secret: %s%s", command, out, errs)
	}
	return strings.TrimSpace(out)
}

// until repeats a command until it succeeds and prints all words.
func (s *site) until(command string, printed ...string) (out string) {
	s.Helper()
	var errs string
	var code int
	eventually(s.T, patience, func() bool {
		out, errs, code = call(s.T, s.env, words(strings.ReplaceAll(command, "SECRET", s.secret))...)
		for _, w := range printed {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				return false
			}
		}
		return code == exitOK
	}, func() string { return out + errs + s.err.String() })
	return out
}

const (
	enableSource = "replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET"
	enableTarget = "replication enable data-1 --role target --local 10.0.0.2:7800 --peer 10.0.0.1:7800 --secret-file SECRET --yes"
)

// TestReplicationCommands: the commands on two sites, with what they refuse and what a dry run says.
func TestReplicationCommands(t *testing.T) {
	a, b, _ := twoSites(t)
	if out := a.do("", "replication status"); out != "no volume is replicated" {
		t.Errorf("without a replicated volume: %s", out)
	}
	a.do("", "volume create data-1 --size 64MiB")
	b.do("", "volume create data-1 --size 64MiB")
	for command, want := range map[string]string{
		"replication enable data-1 --role source --peer 10.0.0.2:7800 --secret-file SECRET":                                    "--local",
		"replication enable data-1 --role both --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET":                "--role",
		"replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET --max-rate x": "--max-rate",
		"replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800":                                   "--secret-file is required",
		"replication enable data --role target --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET":                "give the whole ID or name",
		"replication enable data-1 --role target --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET":              "would be replaced by those of the peer",
		"replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.1:7800 --secret-file SECRET":              "must differ",
		"replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file SECRET.absent":       "no such file",
		"replication enable data-1 --role source --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --secret-file -":                   "it is empty",
		"replication promote data-1 --secret-file SECRET":                                                                      "replication is not enabled",
		"replication promote data-1 --force --secret-file SECRET":                                                              "add --yes",
		"replication resync data-1 --force --secret-file SECRET":                                                               "add --yes",
		"replication status data-1":                  "it is not enabled",
		"replication status data-2":                  "`drivebay volumes` lists the volumes",
		"replication demote data-1 --local-secret x": "unknown flag",
	} {
		a.do(want, command)
	}
	for command, want := range map[string]string{
		enableSource + " --dry-run": "would: keep the data of the volume, and copy them to the peer when it connects",
		"replication enable data-1 --role target --local 10.0.0.1:7800 --peer 10.0.0.2:7800 --dry-run": "would: replace the data of the volume by those of the peer when it connects",
		"replication promote data-1 --dry-run":                                                         "would be refused now: volume",
		"replication disable data-1 --dry-run":                                                         "would: do nothing: the volume is not replicated",
	} {
		if out := a.do("", command); !strings.Contains(out, want) || !strings.Contains(out, "dry run, nothing is changed") {
			t.Errorf("drivebay %s: %s", command, out)
		}
	}
	if out := a.do("", "replication status"); out != "no volume is replicated" {
		t.Errorf("after dry runs: %s", out)
	}
	a.do("", enableSource)
	a.do("", enableSource)
	b.do("", enableTarget)
	a.until("replication status data-1", "data-1 primary ready 10.0.0.2:7800 C")
	b.until("replication status data-1", "data-1 secondary ready 10.0.0.1:7800 C")
	if _, errs, code := call(t, a.env, "replication", "status", "-x"); code != exitOK {
		t.Errorf("in sync: exit status %d: %s", code, errs)
	}
	b.do("the peer is primary; demote it first", "replication promote data-1 --secret-file SECRET")
	a.do("", "replication demote data-1 --secret-file SECRET")
	a.until("replication status", "data-1 secondary ready")
	b.until("replication promote data-1 --secret-file SECRET", "is primary on this side") // the link tells the roles every 100 ms
	if out := a.do("", "replication resync data-1 --secret-file SECRET"); !strings.Contains(out, "has the same data on both sides") {
		t.Errorf("resync of a side in sync: %s", out)
	}
	b.do("the volume is primary; demote it first", "replication resync data-1 --secret-file SECRET")
	for _, s := range []*site{a, b} {
		s.do("", "replication disable data-1 --secret-file SECRET")
		s.do("", "replication disable data-1 --secret-file SECRET")
		if out := s.do("", "replication status"); out != "no volume is replicated" {
			t.Errorf("after the end: %s", out)
		}
		if strings.Contains(s.err.String()+s.out.String(), replicationSecret) {
			t.Errorf("the log has the secret: %s", s.err.String())
		}
		err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), replicationSecret) {
				t.Errorf("%s has the secret, or cannot be read: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestReplicationStatusOfALoss: a peer that does not answer is DEGRADED, with the exit status for it.
func TestReplicationStatusOfALoss(t *testing.T) {
	a, b, setUp := twoSites(t)
	a.do("", "volume create data-1 --size 64MiB")
	b.do("", "volume create data-1 --size 64MiB")
	a.do("", enableSource)
	b.do("", enableTarget)
	b.until("replication status", "ready")
	setUp(false)
	b.until("replication status", "degraded", "next, data-1: if the other machine is up: `drivebay replication resync data-1 --secret-file FILE`")
	out, _, code := call(t, b.env, "replication", "status", "-x")
	if code != 3 || !regexp.MustCompile(`data-1.*DEGRADED`).MatchString(out) {
		t.Errorf("exit status %d: %s", code, out)
	}
	if out := b.do("", "replication status -o jsonpath={.volumes[0].peer}"); out != "10.0.0.1:7800" {
		t.Errorf("the peer by a template: %s", out)
	}
	b.do("promote with force", "replication promote data-1 --secret-file SECRET")
	b.do("", "replication promote data-1 --force --yes --secret-file SECRET")
	b.until("replication status", "data-1 primary degraded")
}

// TestReplicationAfterRestart: after a restart of the machine a volume has its role again. With the secret in the configuration it
// connects, without it, it waits for a command.
func TestReplicationAfterRestart(t *testing.T) {
	for name, configured := range map[string]bool{"with the secret": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			stateDir := filepath.Join(t.TempDir(), "state")
			a, b := newSite(t, "--state-dir", stateDir), newSite(t)
			hostsim.Join(a.machine, b.machine)
			a.do("", "volume create data-1 --size 64MiB")
			b.do("", "volume create data-1 --size 64MiB")
			a.do("", enableSource)
			b.do("", enableTarget)
			a.until("replication status", "primary ready")

			a.end()
			a.machine.PowerCut()
			args := []string{"--state-dir", stateDir}
			if configured {
				args = append(args, "--replication-secret-file", a.secret)
			}
			again := siteOn(t, a.machine, args...)
			if configured {
				again.until("replication status", "primary ready")
				return
			}
			again.until("replication status", "primary degraded", "`drivebay replication promote data-1 --secret-file FILE` here")
			again.do("", "replication promote data-1 --secret-file SECRET")
			again.until("replication status", "primary ready")
		})
	}
}

// TestReplicationMissing: a machine without the module, or without drbdmeta, says what to do. Only one that has replicated volumes
// has a fault.
func TestReplicationMissing(t *testing.T) {
	for without, want := range map[string]string{"drbd": "modprobe drbd usermode_helper=/bin/true", "drbdmeta": "install drbd-utils"} {
		t.Run(without, func(t *testing.T) {
			stateDir := filepath.Join(t.TempDir(), "state")
			rack := filepath.Join(t.TempDir(), "rack.yaml")
			write(t, rack, siteRack+"without: ["+without+"]\n")
			m, err := hostsim.LoadFile(rack)
			if err != nil {
				t.Fatal(err)
			}
			s := siteOn(t, m, "--state-dir", stateDir)
			s.until("replication status", "no volume is replicated", "missing: ", want)
			s.do("", "status")
			s.do("", "volume create data-1 --size 64MiB")
			if out := s.do("", "replication status -o jsonpath={.missing}"); !strings.Contains(out, want) {
				t.Errorf("missing is %q", out)
			}
		})
	}
}

// runbookLine is a command of the runbook: on which machine, and what it is.
var runbookLine = regexp.MustCompile(`^([ab])\$ drivebay (.*)$`)

// TestReplicationRunbook runs the commands of docs/replication.md on two machines, section by section, and wants the lines that the
// page shows.
func TestReplicationRunbook(t *testing.T) {
	a, b, setUp := twoSites(t)
	sites := map[string]*site{"a": a, "b": b}
	before := map[string]func(){
		"Unplanned failover": func() { setUp(false) },
		"Split brain":        func() { setUp(true) },
		"When a drive fails": func() {
			drive := a.do("", "volumes -o jsonpath={.volumes[0].location.drives[0]}")
			serial, _, _ := call(t, a.env, "drives", "-o", fmt.Sprintf(`jsonpath={.drives[?(@.id=="%s")].serial}`, drive))
			if err := a.machine.Inject(hostsim.Fault{Drive: strings.TrimSpace(serial), Fault: "vanish"}); err != nil {
				t.Fatal(err)
			}
		},
	}
	page, err := os.ReadFile("../../docs/replication.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		if happens, is := before[title]; is {
			happens()
			delete(before, title)
		}
		for _, c := range runbookOf(section) {
			commands++
			t.Logf("%s: %s$ %q", title, c.on, c.args)
			c.run(t, sites[c.on])
		}
	}
	if commands < 25 || len(before) > 0 {
		t.Errorf("%d commands found; sections that were not: %v", commands, before)
	}
}

// runbookCommand is a command of the runbook, on one of the two machines.
type runbookCommand struct {
	shown
	on string
}

func runbookOf(section string) (list []*runbookCommand) {
	for _, block := range consoleBlock.FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if m := runbookLine.FindStringSubmatch(line); m != nil {
				list = append(list, &runbookCommand{shown{args: words(m[2])}, m[1]})
			} else if line != "..." && len(list) > 0 {
				last := list[len(list)-1]
				last.lines = append(last.lines, line)
			}
		}
	}
	return list
}

// run repeats a command until it prints what the page shows: each is idempotent, and the machines learn of each other within
// moments.
func (c *runbookCommand) run(t *testing.T, s *site) {
	t.Helper()
	args := slices.Clone(c.args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "/etc/drivebay/replication.secret", s.secret)
	}
	var out, errs, missing string
	var code int
	eventually(t, patience, func() bool {
		out, errs, code = call(t, s.env, args...)
		missing = c.missing(out)
		return code == exitOK && missing == ""
	}, func() string {
		return fmt.Sprintf("%s$ drivebay %q: exit %d, not printed: %q\n%s%s", c.on, c.args, code, missing, out, errs)
	})
}
