//go:build root

package gpt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/loopdisk"
)

// device is a loop device of a sparse file.
type device struct {
	*os.File
	name        string
	size, block int
}

func (d *device) Size() uint64   { return uint64(d.size) }
func (d *device) BlockSize() int { return d.block }

func tool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

func loopDevice(t *testing.T, size, block int) *device {
	t.Helper()
	_, name := loopdisk.New(t, int64(size), "--sector-size", strconv.Itoa(block))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return &device{f, name, size, block}
}

// attribute reads what the kernel says of a partition of a loop device, in bytes.
func attribute(t *testing.T, d *device, number int, name string) uint64 {
	t.Helper()
	base := filepath.Base(d.name)
	b, err := os.ReadFile(fmt.Sprintf("/sys/block/%s/%sp%d/%s", base, base, number, name))
	must(t, err)
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	must(t, err)
	return n * 512
}

// TestRootTools has our tables read by the kernel, sgdisk, parted and blkid, and
// reads what sgdisk and parted write.
func TestRootTools(t *testing.T) {
	for _, block := range []int{512, 4096} {
		t.Run(fmt.Sprint(block), func(t *testing.T) {
			d := loopDevice(t, 64*mib, block)
			table, err := New(d)
			must(t, err)
			add(t, table, 4*mib, "drivebay-one")
			gap := add(t, table, 4*mib, "drivebay-gap")
			add(t, table, 8*mib, "drivebay-three é")
			must(t, table.Remove(gap.GUID))
			must(t, table.Write(d))

			if out := tool(t, "sgdisk", "--verify", d.name); !strings.Contains(out, "No problems found") {
				t.Errorf("sgdisk: %s", out)
			}
			if out := tool(t, "blkid", "-p", "-o", "export", d.name); !strings.Contains(out, "PTUUID="+table.GUID+"\nPTTYPE=gpt") {
				t.Errorf("blkid: %s", out)
			}
			tool(t, "blockdev", "--rereadpt", d.name)
			if parts, err := filepath.Glob("/sys/block/" + filepath.Base(d.name) + "/loop*p*"); err != nil || len(parts) == 0 {
				tool(t, "partx", "--add", d.name) // a kernel without CONFIG_EFI_PARTITION has to be told
			}
			printed := tool(t, "parted", "--script", "--machine", d.name, "unit", "B", "print")
			for _, p := range table.Partitions {
				if start, size := attribute(t, d, p.Number, "start"), attribute(t, d, p.Number, "size"); start != p.Start || size != p.Size {
					t.Errorf("the kernel has partition %d at %d, %d bytes", p.Number, start, size)
				}
				if want := fmt.Sprintf("\n%d:%dB:%dB:%dB::%s:", p.Number, p.Start, p.end()-1, p.Size, p.Name); !strings.Contains(printed, want) {
					t.Errorf("parted does not say %q: %s", want, printed)
				}
				info := tool(t, "sgdisk", fmt.Sprint("--info=", p.Number), d.name)
				for _, want := range []string{"Partition GUID code: " + strings.ToUpper(p.Type), "Partition unique GUID: " + strings.ToUpper(p.GUID), "Partition name: '" + p.Name + "'"} {
					if !strings.Contains(info, want) {
						t.Errorf("sgdisk does not say %q: %s", want, info)
					}
				}
			}

			for _, foreign := range [][]string{
				{"sgdisk", "--new=2:0:+3M", "--change-name=2:theirs", "--attributes=2:set:2", d.name},
				{"parted", "--script", d.name, "mklabel", "gpt", "mkpart", "theirs", "ext4", "2MiB", "6MiB"},
			} {
				tool(t, foreign...)
				theirs, err := Read(d)
				must(t, err)
				p, ok := theirs.FindName("theirs")
				if !ok || !whole(d) {
					t.Fatalf("after %v: %+v", foreign, theirs)
				}
				added := add(t, theirs, 5*mib, "drivebay-more")
				must(t, theirs.Write(d))
				if out := tool(t, "sgdisk", "--verify", d.name); !strings.Contains(out, "No problems found") {
					t.Errorf("sgdisk: %s", out)
				}
				again, err := Read(d)
				must(t, err)
				if q, _ := again.FindName("theirs"); q != p {
					t.Errorf("%+v became %+v", p, q)
				}
				if q, _ := again.Find(added.GUID); q != added {
					t.Errorf("%+v became %+v", added, q)
				}
			}

			for table, err = Read(d); err == nil && len(table.Partitions) > 0; {
				must(t, table.Remove(table.Partitions[0].GUID))
			}
			must(t, err)
			must(t, table.Write(d))
			must(t, Erase(d))
			if out, err := exec.Command("blkid", "-p", d.name).CombinedOutput(); err == nil {
				t.Errorf("an erased drive: %s", out)
			}
		})
	}
}
