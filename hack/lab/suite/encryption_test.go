//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

const (
	vaultSocket     = "unix:///run/csi.sock"
	vaultCapability = `"volume_capability":{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`
	vaultConfig     = quick + "claim: all\ncsiEndpoint: " + vaultSocket + "\n"
	rightKey        = "open, sesame"
	wrongKey        = "open, barley"
)

// vault is a daemon that makes encrypted volumes on one drive and has its state on
// another one.
type vault struct {
	*lab.Machine
	t *testing.T
	d *lab.Daemon
}

func newVault(t *testing.T) *vault {
	t.Helper()
	state, data := nvme("NVSTATE"), nvme("NVDATA")
	data.Size = 2 << 30
	v := &vault{lab.Start(t, machine.Spec{Drives: []machine.Drive{state, data}}), t, nil}
	v.Sh("mkfs.ext4 -q /dev/%s", v.Name("NVSTATE"))
	v.up()
	return v
}

// up is what happens when a machine comes up.
func (v *vault) up() {
	v.t.Helper()
	v.Sh("mkdir -p %s /var/lib/kubelet && mount /dev/%s %[1]s", lab.DaemonState, v.Name("NVSTATE"))
	v.d = v.Daemon(vaultConfig)
}

// chest is an encrypted volume, and what a kubelet does to it.
type chest struct {
	*vault
	t         *testing.T
	id, stage string
}

// call makes a call with a passphrase, and returns the answer or what is said. The
// request is a file, so that the passphrase is an argument of nobody.
func (v *vault) call(t *testing.T, name, key, request string) string {
	t.Helper()
	text := fmt.Sprintf(`{%s,"secrets":{"passphrase":%q}}`, request, key)
	if key == "" {
		text = "{" + request + "}"
	}
	return v.For(t).Output(fmt.Sprintf("/usr/local/bin/drivebay csi --endpoint %s %s - 2>&1 <<'END'\n%s\nEND", vaultSocket, name, text))
}

// must is call, of which no error is wanted.
func (v *vault) must(t *testing.T, name, key, request string, into any) {
	t.Helper()
	out := v.call(t, name, key, request)
	if !strings.HasPrefix(out, "{") {
		t.Fatalf("%s: %s", name, out)
	}
	if err := json.Unmarshal([]byte(out), into); into != nil && err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// make has a volume made, as a copy of a snapshot if there is a source.
func (v *vault) make(t *testing.T, name, backing, source string) *chest {
	t.Helper()
	var made struct {
		Volume struct {
			VolumeID      string `json:"volumeId"`
			CapacityBytes string
		}
	}
	began := time.Now()
	v.must(t, "CreateVolume", rightKey, fmt.Sprintf(`"name":%q,"capacity_range":{"required_bytes":"268435456"},%s,"parameters":{"drivebay.io/backing":%q,"drivebay.io/encryption":"luks2"}%s`,
		name, strings.Replace(vaultCapability, `"volume_capability":`, `"volume_capabilities":[`, 1)+"]", backing, source), &made)
	t.Logf("%s made in %v", name, time.Since(began).Round(time.Millisecond))
	if made.Volume.CapacityBytes != "268435456" {
		t.Errorf("%s has %s bytes", name, made.Volume.CapacityBytes)
	}
	return &chest{v, t, made.Volume.VolumeID, "/var/lib/kubelet/" + name}
}

func (c *chest) open(key string) string {
	c.t.Helper()
	return c.call(c.t, "NodeStageVolume", key, fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q,%s`, c.id, c.stage, vaultCapability))
}

// opens wants the volume to open with the right key, and with that alone.
func (c *chest) opens() {
	c.t.Helper()
	if out := c.open(wrongKey); !strings.Contains(out, "Unauthenticated") {
		c.t.Errorf("staged with the wrong key: %s", out)
	}
	began := time.Now()
	if out := c.open(rightKey); !strings.HasPrefix(out, "{") {
		c.t.Fatalf("staged with the right key: %s", out)
	}
	c.t.Logf("staged in %v", time.Since(began).Round(time.Millisecond))
}

func (c *chest) close() {
	c.t.Helper()
	c.must(c.t, "NodeUnstageVolume", "", fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q`, c.id, c.stage), nil)
	if out := c.Output("dmsetup ls --target crypt"); strings.Contains(out, c.id) {
		c.t.Errorf("unstaged, it is still unlocked: %s", out)
	}
}

func (c *chest) delete() {
	c.t.Helper()
	c.must(c.t, "DeleteVolume", "", fmt.Sprintf(`"volume_id":%q`, c.id), nil)
	if out := c.Output("ls " + lab.DaemonState + "/luks"); strings.Contains(out, c.id) {
		c.t.Errorf("deleted, a copy of its header is left: %s", out)
	}
}

func (c *chest) sum() string { c.t.Helper(); return c.Sh("md5sum <%s/text", c.stage) }

// nowhere wants a text not to be on the drive. The kernel keeps what was read of a
// drive apart from what was written to its partitions.
func (c *chest) nowhere(what, text string) {
	c.t.Helper()
	if out := c.Output(fmt.Sprintf("sync; echo 3 >/proc/sys/vm/drop_caches; grep -c '%s' /dev/%s", text, c.Name("NVDATA"))); strings.TrimSpace(out) != "0" {
		c.t.Errorf("%s is on the drive: %s", what, out)
	}
}

// TestLabEncryption is the life of an encrypted volume with the real cryptsetup and
// the real dm-crypt: no key, no data; not on the drive, not after a power cut.
func TestLabEncryption(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	for _, backing := range []string{"partition", "lvm", "thin"} {
		t.Run(backing, func(t *testing.T) {
			v.watchPrograms()
			c := v.make(t, "safe-"+backing, backing, "")
			c.opens()
			if out := c.Sh("dmsetup table --target crypt"); strings.Contains(out, "allow_discards") || !strings.Contains(out, "aes-xts-plain64") || !strings.Contains(out, ":logon:") {
				t.Errorf("the device in plain is %s", out)
			}
			c.Sh("for i in $(seq 2000); do echo the secret of the mountain $i; done >%s/text; sync", c.stage)
			sum := c.sum()
			c.nowhere("what was written", "secret of the mountain")
			c.grow()
			c.restartInUse(sum)
			c.close()
			if backing == "partition" {
				v.PowerCut()
				v.Must(v.Boot(t.Context()))
				v.up()
			}
			c.opens()
			if got := c.sum(); got != sum {
				t.Error("the data have changed")
			}
			if backing == "thin" {
				c.copied(sum)
			}
			c.close()
			if backing == "partition" {
				c.restore()
			}
			c.untold()
			c.delete()
			c.nowhere("a header", "LUKS")
		})
	}
}

// watchPrograms writes down what everybody can see of cryptsetup while it runs.
func (v *vault) watchPrograms() {
	v.t.Helper()
	v.Sh(`rm -f /run/seen; (setsid bash -c 'while ! test -e /run/enough; do for p in $(pidof cryptsetup); do cat /proc/$p/cmdline /proc/$p/environ; done; sleep 0.05; done' >/run/seen 2>/dev/null </dev/null &)`)
}

// untold wants no trace of the passphrases anywhere.
func (c *chest) untold() {
	c.t.Helper()
	c.Sh("touch /run/enough; sleep 0.3; rm /run/enough")
	if seen := c.Output("tr '\\0' ' ' </run/seen"); !strings.Contains(seen, "--key-file -") || strings.Contains(seen, "open, ") {
		c.t.Errorf("seen of the programs: %.300s", seen)
	}
	if out := c.Output("grep -rc 'open, ' " + lab.DaemonState + " | grep -v ':0$'"); out != "" {
		c.t.Errorf("a passphrase is in the state directory: %s", out)
	}
	if log := c.d.Log(); strings.Contains(log, rightKey) || strings.Contains(log, wrongKey) {
		c.t.Error("a passphrase is in the log")
	}
}

// grow grows the volume while it is in use.
func (c *chest) grow() {
	c.t.Helper()
	c.must(c.t, "ControllerExpandVolume", "", fmt.Sprintf(`"volume_id":%q,"capacity_range":{"required_bytes":"402653184"}`, c.id), nil)
	grow := fmt.Sprintf(`"volume_id":%q,"volume_path":%q,"capacity_range":{"required_bytes":"402653184"}`, c.id, c.stage)
	if out := c.call(c.t, "NodeExpandVolume", wrongKey, grow); !strings.Contains(out, "Unauthenticated") {
		c.t.Errorf("grown with the wrong key: %s", out)
	}
	c.must(c.t, "NodeExpandVolume", rightKey, grow, nil)
	if got := c.Sh("blockdev --getsize64 $(findmnt -no SOURCE %s)", c.stage); got != "402653184" {
		c.t.Errorf("grown to %s bytes", got)
	}
	if got := c.Sh("df -B1M --output=size %s | tail -1 | tr -d ' '", c.stage); len(got) != 3 || got < "330" {
		c.t.Errorf("its filesystem has %s MiB", got)
	}
}

// restartInUse starts the daemon again while somebody writes to the volume.
func (c *chest) restartInUse(sum string) {
	c.t.Helper()
	c.Sh("rm -f /run/done; (setsid bash -c 'while ! test -e /run/done; do echo more >>%[1]s/more || echo lost >/run/lost; sleep 0.1; done' >/dev/null 2>&1 </dev/null &)", c.stage)
	c.d.Stop()
	c.d = c.Daemon(vaultConfig)
	c.Sh("touch /run/done; ! test -e /run/lost && test -s %s/more", c.stage)
	if out := c.open(rightKey); !strings.HasPrefix(out, "{") {
		c.t.Errorf("in use, staged again: %s", out)
	}
	if out := c.Sh("findmnt -no TARGET | grep -c '^%s$'", c.stage); out != "1" {
		c.t.Errorf("it is mounted %s times", out)
	}
	if got := c.sum(); got != sum {
		c.t.Error("restarted, the data have changed")
	}
}

// copied restores a snapshot: another volume, which opens with the same key beside
// the one that it was taken of.
func (c *chest) copied(sum string) {
	c.t.Helper()
	var taken struct {
		Snapshot struct {
			SnapshotID string `json:"snapshotId"`
		}
	}
	c.must(c.t, "CreateSnapshot", "", fmt.Sprintf(`"name":"snap","source_volume_id":%q`, c.id), &taken)
	id := taken.Snapshot.SnapshotID
	copied := c.make(c.t, "copy", "thin", fmt.Sprintf(`,"volume_content_source":{"snapshot":{"snapshot_id":%q}}`, id))
	copied.opens()
	if got := copied.sum(); got != sum {
		c.t.Error("the copy holds something else")
	}
	copied.close()
	copied.delete()
	c.must(c.t, "DeleteSnapshot", "", fmt.Sprintf(`"snapshot_id":%q`, id), nil)
}

// restore has the header overwritten, and put back from the copy by cryptsetup.
func (c *chest) restore() {
	c.t.Helper()
	dev := "/dev/" + c.Name("NVDATA") + "p1"
	c.Sh("test $(stat -c %%a %[1]s) = 700 && test $(stat -c %%a %[1]s/%[2]s.*.luks) = 600 && cp %[1]s/%[2]s.*.luks /run/header && cryptsetup luksDump /run/header >/dev/null", lab.DaemonState+"/luks", c.id)
	c.Sh("dd if=/dev/zero of=%s bs=1M count=2 oflag=direct status=none; ! cryptsetup isLuks %[1]s", dev)
	if out := c.open(rightKey); !strings.Contains(out, "luksHeaderRestore") {
		c.t.Errorf("staged without its header: %s", out)
	}
	c.Sh("cryptsetup -q luksHeaderRestore %s --header-backup-file /run/header", dev)
	c.opens()
	c.close()
}

// TestLabEncryptionPulled: what was unlocked on a drive that was pulled is never
// used again when the drive is back, and what was synced is there.
func TestLabEncryptionPulled(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := v.make(t, "safe", "partition", "")
	c.opens()
	c.Sh("echo the secret of the mountain >%s/text; sync", c.stage)
	sum, dead := c.sum(), c.Sh("findmnt -no SOURCE %s", c.stage)
	began := c.Name("NVDATA")
	v.Must(v.Unplug(t.Context(), "NVDATA"))
	v.Must(v.Replug(t.Context(), "NVDATA"))
	t.Logf("%s, then %s; in plain %s: %s", began, c.Name("NVDATA"), dead, v.Output("dmsetup table --target crypt; ls /sys/block/dm-*/slaves"))
	time.Sleep(poll)
	publish := fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q,"target_path":"/var/lib/kubelet/pod",%s`, c.id, c.stage, vaultCapability)
	if out := v.call(t, "NodePublishVolume", "", publish); !strings.Contains(out, "FailedPrecondition") {
		t.Errorf("published from a dead device: %s", out)
	}
	c.opens()
	if got := c.sum(); got != sum {
		t.Error("the data have changed")
	}
	if out := v.Sh("dmsetup ls --target crypt | wc -l; findmnt -no TARGET | grep -c '^%s$'", c.stage); strings.Join(strings.Fields(out), " ") != "1 1" {
		t.Errorf("devices in plain and mounts: %s", out)
	}
	v.Must(v.Unplug(t.Context(), "NVDATA"))
	time.Sleep(poll)
	c.close()
}
