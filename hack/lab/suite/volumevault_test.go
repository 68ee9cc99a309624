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
	d *lab.Daemon
}

func newVault(t *testing.T) *vault {
	t.Helper()
	state, data := nvme("NVSTATE"), nvme("NVDATA")
	data.Size = 1536 << 20
	v := &vault{Machine: lab.Start(t, machine.Spec{Drives: []machine.Drive{state, data}})}
	v.Sh("mkfs.ext4 -q /dev/%s", v.Name("NVSTATE"))
	v.up()
	return v
}

// up is what happens when a machine comes up.
func (v *vault) up() {
	v.Sh("mkdir -p %s /var/lib/kubelet && mount /dev/%s %[1]s", lab.DaemonState, v.Name("NVSTATE"))
	v.d = v.Daemon(vaultConfig)
}

// chest is an encrypted volume, and what a kubelet does to it.
type chest struct {
	*lab.Machine
	v         *vault
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

// callAgain is call, and like an orchestrator it calls again what takes longer than a call.
func (v *vault) callAgain(t *testing.T, name, key, request string) string {
	t.Helper()
	out := v.call(t, name, key, request)
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end) && (strings.Contains(out, "DeadlineExceeded") || strings.Contains(out, "Aborted")); {
		time.Sleep(2 * time.Second)
		out = v.call(t, name, key, request)
	}
	return out
}

// must is callAgain, of which no error is wanted.
func (v *vault) must(t *testing.T, name, key, request string, into any) {
	t.Helper()
	out := v.callAgain(t, name, key, request)
	if !strings.HasPrefix(out, "{") {
		t.Fatalf("%s: %s", name, out)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
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
	if source == "" && made.Volume.CapacityBytes != "268435456" {
		t.Errorf("%s has %s bytes", name, made.Volume.CapacityBytes)
	}
	return &chest{v.For(t), v, t, made.Volume.VolumeID, "/var/lib/kubelet/" + name}
}

func (c *chest) open(key string) string {
	c.t.Helper()
	return c.v.callAgain(c.t, "NodeStageVolume", key, fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q,%s`, c.id, c.stage, vaultCapability))
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
	c.v.must(c.t, "NodeUnstageVolume", "", fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q`, c.id, c.stage), nil)
	if out := c.Output("dmsetup ls --target crypt"); strings.Contains(out, c.id) {
		c.t.Errorf("unstaged, it is still unlocked: %s", out)
	}
}

func (c *chest) delete() {
	c.t.Helper()
	c.v.must(c.t, "DeleteVolume", "", fmt.Sprintf(`"volume_id":%q`, c.id), nil)
	if out := c.Output("ls " + lab.DaemonState + "/luks"); strings.Contains(out, c.id) {
		c.t.Errorf("deleted, a copy of its header is left: %s", out)
	}
}

func (c *chest) sum() string { c.t.Helper(); return c.Sh("md5sum <%s/text", c.stage) }

// nowhere wants a text not to be on the drive. The kernel keeps what was read of a
// drive apart from what was written to its partitions.
func (c *chest) nowhere(what, text string) {
	c.t.Helper()
	if out := c.Output(fmt.Sprintf("sync; echo 3 >/proc/sys/vm/drop_caches; LC_ALL=C grep -cF '%s' /dev/%s", text, c.Name("NVDATA"))); strings.TrimSpace(out) != "0" {
		c.t.Errorf("%s is on the drive: %s", what, out)
	}
}

// TestLabVolumeEncryptionPulled: what was unlocked on a drive that was pulled is never
// used again when the drive is back, and what was synced is there.
func TestLabVolumeEncryptionPulled(t *testing.T) {
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
	if out := v.Sh("dmsetup ls --target crypt | wc -l; grep -c ' %s ' /proc/mounts", c.stage); strings.Join(strings.Fields(out), " ") != "1 1" {
		t.Errorf("devices in plain and mounts: %s", out)
	}
	v.Must(v.Unplug(t.Context(), "NVDATA"))
	time.Sleep(poll)
	c.close()
}
