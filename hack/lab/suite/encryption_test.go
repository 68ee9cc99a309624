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

// vault is a daemon that makes encrypted volumes, and what a kubelet does to them.
type vault struct {
	*lab.Machine
	t   *testing.T
	dir string // the state directory, on a drive that keeps it
	id  string
}

const vaultSocket = "unix:///run/csi.sock"

// call makes a call with a passphrase, and returns the answer or what is said.
func (v *vault) call(name, key, request string) string {
	v.t.Helper()
	secrets := fmt.Sprintf(`"secrets":{"passphrase":%q}`, key)
	return v.Output(fmt.Sprintf(`/usr/local/bin/drivebay csi --endpoint %s %s '{%s,%s}' 2>&1`, vaultSocket, name, request, secrets))
}

// must is call, of which no error is wanted.
func (v *vault) must(name, key, request string) string {
	v.t.Helper()
	out := v.call(name, key, request)
	if !strings.HasPrefix(out, "{") {
		v.t.Fatalf("%s: %s", name, out)
	}
	return out
}

const vaultCapability = `{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`

const vaultStage = "/var/lib/kubelet/stage"

func (v *vault) stage(key string) string {
	v.t.Helper()
	return v.call("NodeStageVolume", key, fmt.Sprintf(`"volume_id":%q,"staging_target_path":%q,"volume_capability":%s`, v.id, vaultStage, vaultCapability))
}

func (v *vault) unstage() {
	v.t.Helper()
	if out := v.Output(fmt.Sprintf(`/usr/local/bin/drivebay csi --endpoint %s NodeUnstageVolume '{"volume_id":%q,"staging_target_path":%q}' 2>&1`, vaultSocket, v.id, vaultStage)); !strings.HasPrefix(out, "{") {
		v.t.Fatalf("unstage: %s", out)
	}
	if out := v.Output("dmsetup ls --target crypt"); !strings.Contains(out, "No devices") {
		v.t.Errorf("unstaged, it is still unlocked: %s", out)
	}
}

// TestLabEncryption is the life of an encrypted volume with the real cryptsetup and
// the real dm-crypt: no key, no data; not on the drive, not after a power cut.
func TestLabEncryption(t *testing.T) {
	t.Parallel()
	const right, wrong = "open, sesame", "open, barley"
	const config = quick + "claim: all\ncsiEndpoint: " + vaultSocket + "\n"
	state, data := nvme("NVSTATE"), nvme("NVDATA")
	data.Size = 2 << 30
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{state, data}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("NVSTATE"))
	up := func() *lab.Daemon {
		m.Sh("mkdir -p %s /var/lib/kubelet && mount /dev/%s %[1]s", lab.DaemonState, m.Name("NVSTATE"))
		return m.Daemon(config)
	}
	d := up()
	for _, backing := range []string{"partition", "lvm"} {
		t.Run(backing, func(t *testing.T) {
			m := m.For(t)
			v := &vault{Machine: m, t: t}
			create := fmt.Sprintf(`"name":"safe-%s","capacity_range":{"required_bytes":"268435456"},"volume_capabilities":[%s],"parameters":{"drivebay.io/backing":%[1]q,"drivebay.io/encryption":"luks2"}`, backing, vaultCapability)
			began := time.Now()
			var made struct {
				Volume struct {
					VolumeID      string `json:"volumeId"`
					CapacityBytes string
				}
			}
			m.Must(json.Unmarshal([]byte(v.must("CreateVolume", right, create)), &made))
			v.id = made.Volume.VolumeID
			t.Logf("made in %v", time.Since(began).Round(time.Millisecond))
			if made.Volume.CapacityBytes != "268435456" {
				t.Errorf("it has %s bytes", made.Volume.CapacityBytes)
			}
			if out := v.stage(wrong); !strings.Contains(out, "Unauthenticated") {
				t.Errorf("staged with the wrong key: %s", out)
			}
			began = time.Now()
			if out := v.stage(right); !strings.HasPrefix(out, "{") {
				t.Fatalf("staged with the right key: %s", out)
			}
			t.Logf("staged in %v", time.Since(began).Round(time.Millisecond))
			if out := m.Sh("dmsetup table --target crypt"); strings.Contains(out, "allow_discards") || !strings.Contains(out, "aes-xts-plain64") || !strings.Contains(out, ":logon:") {
				t.Errorf("the device in plain is %s", out)
			}
			m.Sh("for i in $(seq 2000); do echo the secret of the mountain $i; done >%s/text; sync", vaultStage)
			sum := m.Sh("md5sum <%s/text", vaultStage)
			if out := m.Output("echo 3 >/proc/sys/vm/drop_caches; grep -c 'secret of the mountain' /dev/" + m.Name("NVDATA")); strings.TrimSpace(out) != "0" {
				t.Errorf("it is on the drive in plain: %s", out)
			}

			v.must("ControllerExpandVolume", right, fmt.Sprintf(`"volume_id":%q,"capacity_range":{"required_bytes":"402653184"}`, v.id))
			grow := fmt.Sprintf(`"volume_id":%q,"volume_path":%q,"capacity_range":{"required_bytes":"402653184"}`, v.id, vaultStage)
			if out := v.call("NodeExpandVolume", wrong, grow); !strings.Contains(out, "Unauthenticated") {
				t.Errorf("grown with the wrong key: %s", out)
			}
			v.must("NodeExpandVolume", right, grow)
			if got := m.Sh("blockdev --getsize64 $(findmnt -no SOURCE %s)", vaultStage); got != "402653184" {
				t.Errorf("grown to %s bytes", got)
			}
			v.unstage()

			if backing == "partition" {
				m.PowerCut()
				m.Must(m.Boot(t.Context()))
				d = up()
			} else {
				d.Stop()
				d = m.Daemon(config)
			}
			if out := v.stage(wrong); !strings.Contains(out, "Unauthenticated") {
				t.Errorf("started again, staged with the wrong key: %s", out)
			}
			if out := v.stage(right); !strings.HasPrefix(out, "{") {
				t.Fatalf("started again: %s", out)
			}
			if got := m.Sh("md5sum <%s/text", vaultStage); got != sum {
				t.Error("the data have changed")
			}
			v.unstage()

			copied := lab.DaemonState + "/luks/" + v.id + ".luks"
			m.Sh("test $(stat -c %%a %s) = 600 && cp %[1]s /run/header && cryptsetup luksDump /run/header >/dev/null", copied)
			v.restore(backing, right)
			if out := m.Output("grep -rc '" + right + "' " + lab.DaemonState + " | grep -v ':0$'"); out != "" {
				t.Errorf("the passphrase is in the state directory: %s", out)
			}
			if strings.Contains(d.Log(), right) || strings.Contains(d.Log(), wrong) {
				t.Error("the passphrase is in the log")
			}
			v.must("DeleteVolume", right, fmt.Sprintf(`"volume_id":%q`, v.id))
			m.Sh("! test -e %s", copied)
			// The kernel keeps what was read of a drive apart from what was written to its partition.
			if out := m.Output("echo 3 >/proc/sys/vm/drop_caches; grep -c LUKS /dev/" + m.Name("NVDATA")); strings.TrimSpace(out) != "0" {
				t.Errorf("deleted, a header is left: %s", out)
			}
		})
	}
}

// restore has the header overwritten, and put back from the copy by cryptsetup.
func (v *vault) restore(backing, right string) {
	v.t.Helper()
	dev := "/dev/" + v.Name("NVDATA") + "p1"
	if backing == "lvm" {
		v.Sh("lvs >/dev/null; vgchange -qay >/dev/null")
		dev = v.Sh("lvs --noheadings -o lv_path | tr -d ' ' | head -1")
	}
	v.Sh("dd if=/dev/zero of=%s bs=1M count=2 oflag=direct status=none; ! cryptsetup isLuks %[1]s", dev)
	v.Sh("cryptsetup -q luksHeaderRestore %s --header-backup-file /run/header && printf '%s' | cryptsetup open --test-passphrase --key-file - %[1]s", dev, right)
}
