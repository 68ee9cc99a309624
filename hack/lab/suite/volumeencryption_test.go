//go:build lab

package suite

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
)

// TestLabVolumeEncryption is the life of an encrypted volume with the real
// cryptsetup and the real dm-crypt: no key, no data; not on the drive, not after a
// power cut. A linear volume has nothing that the others have not: it is for who has
// three minutes more (DRIVEBAY_LAB_LONG=1); a thin one is left out with -short.
func TestLabVolumeEncryption(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	backings := few("partition", "thin")
	if os.Getenv("DRIVEBAY_LAB_LONG") != "" {
		backings = append(backings, "lvm")
	}
	for _, backing := range backings {
		t.Run(backing, func(t *testing.T) {
			watchPrograms(v.For(t))
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
			c.unseen()
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

// watchPrograms writes down what everybody can see of cryptsetup while it runs. It
// starts no program to look: that alone would take one of two processors.
func watchPrograms(m *lab.Machine) {
	m.Sh(`rm -f /run/seen /run/never; mkfifo /run/never; (setsid bash -c 'exec 9<>/run/never; while ! test -e /run/enough; do for p in /proc/[0-9]*; do read -r name <$p/comm && test "$name" = cryptsetup && cat $p/cmdline $p/environ; done; read -rt 0.05 -u 9; done' >/run/seen 2>/dev/null </dev/null &)`)
}

// unseen wants none of the passphrases in that.
func (c *chest) unseen() {
	c.t.Helper()
	c.Sh("touch /run/enough; sleep 0.3; rm /run/enough")
	if seen := c.Output("tr '\\0' ' ' </run/seen"); !strings.Contains(seen, "--key-file -") || strings.Contains(seen, "open, ") {
		c.t.Errorf("seen of the programs: %.300s", seen)
	}
}

// untold wants none of them anywhere else.
func (c *chest) untold() {
	c.t.Helper()
	if out := c.Output("grep -rc 'open, ' " + lab.DaemonState + " | grep -v ':0$'"); out != "" {
		c.t.Errorf("a passphrase is in the state directory: %s", out)
	}
	if log := c.v.d.Log(); strings.Contains(log, rightKey) || strings.Contains(log, wrongKey) {
		c.t.Error("a passphrase is in the log")
	}
}

// grow grows the volume while it is in use.
func (c *chest) grow() {
	c.t.Helper()
	c.v.must(c.t, "ControllerExpandVolume", "", fmt.Sprintf(`"volume_id":%q,"capacity_range":{"required_bytes":"402653184"}`, c.id), nil)
	grow := fmt.Sprintf(`"volume_id":%q,"volume_path":%q,"capacity_range":{"required_bytes":"402653184"}`, c.id, c.stage)
	if out := c.v.call(c.t, "NodeExpandVolume", wrongKey, grow); !strings.Contains(out, "Unauthenticated") {
		c.t.Errorf("grown with the wrong key: %s", out)
	}
	c.v.must(c.t, "NodeExpandVolume", rightKey, grow, nil)
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
	c.v.d.Stop()
	c.v.d = c.v.Daemon(vaultConfig)
	c.Sh("touch /run/done; ! test -e /run/lost && test -s %s/more", c.stage)
	if out := c.open(rightKey); !strings.HasPrefix(out, "{") {
		c.t.Errorf("in use, staged again: %s", out)
	}
	if out := c.Sh("grep -c ' %s ' /proc/mounts", c.stage); out != "1" {
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
	c.v.must(c.t, "CreateSnapshot", "", fmt.Sprintf(`"name":"snap","source_volume_id":%q`, c.id), &taken)
	id := taken.Snapshot.SnapshotID
	copied := c.v.make(c.t, "copy", "thin", fmt.Sprintf(`,"volume_content_source":{"snapshot":{"snapshot_id":%q}}`, id))
	copied.opens()
	if got := copied.sum(); got != sum {
		c.t.Error("the copy holds something else")
	}
	copied.close()
	copied.delete()
	c.v.must(c.t, "DeleteSnapshot", "", fmt.Sprintf(`"snapshot_id":%q`, id), nil)
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
