//go:build lab

package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabPackage installs, upgrades, removes and purges the Debian package under systemd. From its
// first volumes on, a program writes to each of them and may see no error.
func TestLabPackage(t *testing.T) {
	t.Parallel()
	first, second := debianPackage(t, "v1.0.0"), debianPackage(t, "v1.1.0")
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("part1"), scsi("lvm1", 0x5000c500b0000000)}})
	p := &packaged{m, t}
	m.Systemd()
	p.copyIn(first, "/root/first.deb")
	p.copyIn(second, "/root/second.deb")

	for _, step := range []struct {
		name string
		do   func()
	}{
		{"install", p.installs}, {"share the socket", p.shares}, {"reload", p.reloads},
		{"a volume on a partition", func() { p.writes("data-1", "partition", "ext4", "part1") }},
		{"a logical volume", func() { p.writes("data-2", "lvm", "xfs", "lvm1") }},
		{"upgrade", p.upgrades}, {"upgrade with an invalid configuration", p.keepsRunning},
		{"remove", p.removes}, {"install again", p.installsAgain}, {"purge", p.purges}, {"install from source", p.fromSource},
	} {
		began := time.Now()
		step.do()
		t.Logf("%s: %.0f s", step.name, time.Since(began).Seconds())
	}
}

// debianPackage builds the package of a version.
func debianPackage(t *testing.T, version string) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, argv := range [][]string{
		{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=" + version, "-o", dir + "/drivebay", "./cmd/drivebay"},
		{"-C", "hack/packages", "run", ".", "-binary", dir + "/drivebay", "-version", version, "-out", dir},
	} {
		cmd := exec.CommandContext(t.Context(), "go", argv...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "SOURCE_DATE_EPOCH=1700000000")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", argv, err, out)
		}
	}
	return filepath.Join(dir, "drivebay_"+version[1:]+"-1_amd64.deb")
}

// packaged is a machine on which the package is tried.
type packaged struct {
	*lab.Machine
	t *testing.T
}

func (p *packaged) copyIn(file, to string) {
	p.t.Helper()
	f, err := os.Open(file)
	p.Must(err)
	defer f.Close()
	p.Must(p.Guest.Put(p.t.Context(), to, 0o644, f))
}

// says runs a line of shell and wants each text in its output.
func (p *packaged) says(line string, want ...string) string {
	p.t.Helper()
	out := p.Output(line + " 2>&1")
	for _, w := range want {
		if !strings.Contains(out, w) {
			p.t.Errorf("%s: %q is not in:\n%s", line, w, out)
		}
	}
	return out
}

// until runs a line of shell until it succeeds.
func (p *packaged) until(line string) {
	p.t.Helper()
	p.Sh(`while [ $SECONDS -lt 90 ]; do if { %s; } >/tmp/until 2>&1; then exit 0; fi; sleep 0.2; done; cat /tmp/until; journalctl -u drivebay -o cat -n 30; exit 1`, line)
}

func (p *packaged) pid() string { return p.Sh("systemctl show -P MainPID drivebay") }

// installs the first version: the daemon runs, and starts at the next boot.
func (p *packaged) installs() {
	p.Sh("dpkg -i /root/first.deb")
	p.until("systemctl is-active drivebay")
	p.says("systemctl is-enabled drivebay", "enabled")
	p.says("systemctl status drivebay --no-pager", "active (running)", "/etc/drivebay/drivebay.yaml")
	p.says("drivebay version", "v1.0.0")
	p.until("drivebay status")
	p.says("drivebay drives", "part1", "lvm1", "3 drives") // with the root disk
}

// shares: a member of the group reads and changes nothing, the command of another user prints what that user can do.
func (p *packaged) shares() {
	p.says("stat -c '%A %U %G' /run/drivebay/drivebay.sock", "srw-rw---- root drivebay")
	const stranger, member = "setpriv --reuid=65534 --regid=65534 --clear-groups ", "setpriv --reuid=65534 --regid=65534 --groups=drivebay "
	p.says(stranger+"drivebay drives", "use sudo or join the group drivebay")
	p.says(member+"drivebay drives", "part1", "3 drives")
	p.says(member+"drivebay drive cordon part1", "members of the socket's group may only read: use sudo")
	p.says("drivebay drive cordon part1 && drivebay drive uncordon part1")
	p.says("drivebay drives -o json | grep -c '\"cordoned\": *true'", "0")
}

// reloads: the log names the keys that changed and those that need a restart.
func (p *packaged) reloads() {
	p.Sh(`sed -i 's|^#claim:.*|claim: all|; s|^#csiEndpoint:|csiEndpoint:|' /etc/drivebay/drivebay.yaml; systemctl reload drivebay`)
	p.until("journalctl -u drivebay -o cat | grep -q 'changed=claim'")
	p.until("journalctl -u drivebay -o cat | grep -q 'need a restart.*keys=csiEndpoint'")
	p.says("drivebay status -o json", `"restart"`, "csiEndpoint")
	p.Sh("systemctl restart drivebay")
	p.until("drivebay csi Probe | grep -q true")
}

func publication(name string) (staging, target string) {
	return kubelet + "/plugins/" + name, kubelet + "/pods/" + name
}

// writes creates a volume, publishes it as an orchestrator does, and starts a program that writes to
// it and ends at the first error.
func (p *packaged) writes(name, backing, fs, drive string) {
	p.t.Helper()
	other := map[string]string{"part1": "lvm1", "lvm1": "part1"}[drive]
	p.Sh("drivebay drive cordon %s", other)
	out := p.Sh("drivebay volume create %s --size 320MiB --fs %s --backing %s", name, fs, backing)
	p.Sh("drivebay drive uncordon %s", other)
	id := strings.Fields(out)[0]
	staging, target := publication(name)
	capability := fmt.Sprintf(`{"mount": {"fsType": %q}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}`, fs)
	p.Sh("mkdir -p %s %s", staging, kubelet+"/pods")
	p.Sh(`drivebay csi NodeStageVolume '{"volumeId": %q, "stagingTargetPath": %q, "volumeCapability": %s}'`, id, staging, capability)
	p.Sh(`drivebay csi NodePublishVolume '{"volumeId": %q, "stagingTargetPath": %q, "targetPath": %q, "volumeCapability": %s}'`, id, staging, target, capability)
	p.Sh("head -c 1M /dev/urandom >%[1]s/content; sha256sum %[1]s/content >/root/%[2]s.sha256; sync", target, name)
	p.Sh(`cat >/root/write <<'EOF'
	n=0; while :; do n=$((n + 1)); echo $n | dd of=$1/count conv=fsync,notrunc status=none || { echo "write $n failed" >>$2; exit 1; }; echo $n >$2; sleep 0.1; done
EOF`)
	p.Sh("setsid bash /root/write %s /root/%s.count </dev/null >/dev/null 2>&1 &", target, name)
	p.says("udevadm settle; udevadm info -q property -n $(findmnt -n -o SOURCE "+staging+")", "UDISKS_IGNORE=1")
}

// stillWrites wants the volumes mounted where they were, their content the same, and each program to
// have written since.
func (p *packaged) stillWrites() {
	p.t.Helper()
	for _, name := range []string{"data-1", "data-2"} {
		staging, target := publication(name)
		p.says("findmnt -n -o TARGET "+staging+"; findmnt -n -o TARGET "+target, staging, target)
		p.says("sha256sum -c /root/"+name+".sha256", "OK")
		before := p.Sh("cat /root/%s.count", name)
		p.until(fmt.Sprintf("test -s /root/%[1]s.count && test $(cat /root/%[1]s.count) -gt %[2]s", name, before))
	}
}

func (p *packaged) upgrades() {
	was := p.pid()
	p.Sh("dpkg -i /root/second.deb")
	p.until("drivebay csi Probe | grep -q true")
	p.says("drivebay version", "v1.1.0")
	p.says("journalctl -u drivebay -o cat", "drivebay v1.1.0 watches")
	if now := p.pid(); now == was || now == "0" {
		p.t.Errorf("the daemon was not restarted: process %s, then %s", was, now)
	}
	p.says("grep ^claim: /etc/drivebay/drivebay.yaml", "claim: all")
	p.stillWrites()
	p.until("drivebay volumes | grep data-1")
	p.says("drivebay volumes", "data-1", "data-2")
}

// keepsRunning: an upgrade does not replace a running daemon by one that would refuse its
// configuration.
func (p *packaged) keepsRunning() {
	was := p.pid()
	p.Sh("cp /etc/drivebay/drivebay.yaml /root/good.yaml; echo 'lissten: x' >>/etc/drivebay/drivebay.yaml")
	p.says("dpkg -i /root/second.deb", "correct /etc/drivebay/drivebay.yaml", `did you mean "listen"`)
	if now := p.pid(); now != was {
		p.t.Errorf("the daemon was restarted with an invalid configuration: process %s, then %s", was, now)
	}
	p.Sh("cp /root/good.yaml /etc/drivebay/drivebay.yaml")
}

func (p *packaged) removes() {
	p.Sh("dpkg -r drivebay")
	p.says("systemctl is-active drivebay", "inactive")
	p.says("ls /etc/drivebay/drivebay.yaml /var/lib/drivebay/drivebay.db; ls /usr/bin/drivebay", "/etc/drivebay/drivebay.yaml\n", "/var/lib/drivebay/drivebay.db\n", "/usr/bin/drivebay': No such file")
	p.stillWrites()
}

// installsAgain: the daemon finds its volumes where it left them, in use.
func (p *packaged) installsAgain() {
	p.Sh("dpkg -i /root/second.deb")
	p.until("drivebay csi Probe | grep -q true")
	_, target := publication("data-1")
	p.until("drivebay volume show data-1 | grep " + target)
	p.stillWrites()
}

// purges: the configuration and the records are gone, the volumes are not.
func (p *packaged) purges() {
	out := p.says("dpkg --purge drivebay", "copies of headers and metadata")
	p.says("ls /etc/drivebay /var/lib/drivebay/drivebay.db", "/etc/drivebay': No such file", "drivebay.db': No such file")
	p.says("find /var/lib/drivebay -type f", "/var/lib/drivebay/lvm/")
	p.says("systemctl cat drivebay", "No files found")
	p.stillWrites()
	p.Sh("pkill -f /root/write")
	for _, name := range []string{"data-1", "data-2"} {
		staging, target := publication(name)
		device := p.Sh("findmnt -n -o SOURCE %s", staging)
		p.Sh("umount %s %s; mkdir -p /mnt/%s; mount -o ro %s /mnt/%s", target, staging, name, device, name)
		p.says(fmt.Sprintf("sed 's| .*/| /mnt/%[1]s/|' /root/%[1]s.sha256 | sha256sum -c", name), "OK")
	}
	p.t.Logf("purge: %s", out)
}

// fromSource installs the program and the unit of the source tree, as docs/install.md says.
func (p *packaged) fromSource() {
	program := p.Program("./cmd/drivebay")
	p.Must(p.Share(p.t.Context(), "src"))
	p.Sh("cd /share/src; install -m 0755 %s /usr/local/bin/drivebay; install -m 0644 deploy/systemd/drivebay.service /etc/systemd/system/drivebay.service", program)
	p.Sh("systemctl daemon-reload; systemctl enable --now drivebay")
	p.says("stat -c %A /run/drivebay/drivebay.sock", "srw-------")
	p.until("drivebay drives | grep '3 drives'")
}
