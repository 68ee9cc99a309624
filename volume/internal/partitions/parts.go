package partitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// relistEvery is the maximum age of a listing of a drive whose partitions seem unchanged.
const relistEvery = 5 * time.Minute

// LastListing tells of which disk the last listing of a drive was, and when.
type LastListing struct {
	at  time.Time
	num string
}

// PartsNow lists the partitions of a drive if they seem to have changed, or the last listing is old:
// a machine has hundreds of them, with a dozen files each.
func (e *Catalog) PartsNow(ctx context.Context, d *drivebay.Drive) ([]Part, error) {
	num, err := e.Machine.ReadFile("sys/block/" + d.Name + "/dev")
	if err != nil {
		return nil, err
	}
	now := LastListing{e.Machine.Now(), string(num)}
	e.Ledger.Mu.Lock()
	last := e.Last[d.ID]
	list, listed := e.Index.Parts[d.ID]
	e.Ledger.Mu.Unlock()
	if listed && last.num == now.num && now.at.Sub(last.at) < relistEvery && stillThere(e.Machine, d.Name, list) {
		return list, nil
	}
	list, err = e.partsOf(ctx, d)
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	if delete(e.Last, d.ID); err == nil && !slices.ContainsFunc(list, func(p Part) bool { return nameless(p) || unidentified(p) }) {
		e.Last[d.ID] = now
	}
	return list, err
}

// stillThere reports whether a disk has the partitions that were listed, and no other. It reads the files that stay open for the
// statistics of their volumes.
func stillThere(files host.Files, disk string, list []Part) bool {
	names, err := files.ReadDir("sys/block/" + disk)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, disk) })
	if err != nil || len(names) != len(list) {
		return false
	}
	return !slices.ContainsFunc(list, func(p Part) bool {
		at := "sys/dev/block/" + p.Num
		event, err := files.ReadFile(at + "/uevent")
		start, err2 := ReadNumber(files, at+"/start")
		size, err3 := ReadNumber(files, at+"/size")
		return errors.Join(err, err2, err3) != nil || start*512 != p.Start || size*512 != p.Size ||
			!strings.Contains(string(event), "\nDEVNAME="+p.Name+"\n")
	})
}

// partsOf lists the partitions of a drive.
func (e *Catalog) partsOf(ctx context.Context, d *drivebay.Drive) ([]Part, error) {
	list, err := ListParts(e.Machine, d.Name)
	if err == nil {
		err = e.title(ctx, d, list)
	}
	if another := e.hasName(d); another != nil {
		return nil, another
	}
	return list, err
}

// hasName returns an error unless the name of a drive is that of the disk that was listed as the drive: what was read by the name
// before is then of the drive.
func (e *Catalog) hasName(d *drivebay.Drive) error {
	at := "sys/block/" + d.Name
	num, err := e.Machine.ReadFile(at + "/dev")
	place, err2 := e.Machine.Resolve(at)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	is := drivebay.DiskIdentity{DevNum: strings.TrimSpace(string(num)), SysPath: place, Seq: host.DiskSeq(e.Machine, place)}
	if len(d.Disks) > 0 && !slices.Contains(d.Disks, is) {
		return fmt.Errorf("%w: %s is another disk since the drives were listed", drivebay.ErrUnavailable, d.Name)
	}
	return nil
}

// Open opens a drive for reading. The name is looked up while the drive is open: the kernel gives it to no other drive then.
func (e *Catalog) Open(ctx context.Context, d *drivebay.Drive) (host.OpenDrive, error) {
	drive, err := e.Machine.OpenDrive(ctx, "/dev/"+d.Name)
	if err != nil {
		return nil, err
	}
	if err := e.hasName(d); err != nil {
		drive.Close()
		return nil, err
	}
	return drive, nil
}

// ListParts reads the partitions of a block device from sysfs. Start and size are in units of 512
// bytes regardless of the drive's block size (block/partitions/core.c).
func ListParts(files host.Files, disk string) ([]Part, error) {
	dir := "sys/block/" + disk
	names, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Part
	for _, name := range names {
		if !strings.HasPrefix(name, disk) {
			continue
		}
		at := dir + "/" + name
		number, err := ReadNumber(files, at+"/partition")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		start, err1 := ReadNumber(files, at+"/start")
		size, err2 := ReadNumber(files, at+"/size")
		num, err3 := files.ReadFile(at + "/dev")
		if err := errors.Join(err, err1, err2, err3); err != nil {
			return nil, err
		}
		p := Part{Number: int(number), Start: start * 512}
		p.Device = mounttable.Device{Dev: "/dev/" + name, Num: strings.TrimSpace(string(num)), Name: name, Size: size * 512}
		p.Title, p.GUID, p.heard = labelOf(files, at, p.Num)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Compare(a.Start, b.Start) })
	return out, nil
}

// ReadNumber reads a number from a file of sysfs.
func ReadNumber(files host.Files, name string) (uint64, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 54)
}

// LabelOf returns the name and the GUID of a partition in the GPT. The kernel has them for partitions
// that it has read itself, not for those that were added by BLKPG (which has neither), and the GUID only
// since Linux 6.13; udev, if it runs, has them for all. Both may still report a temporary name after
// the partition got another one: LabelOf leaves it out, and the table is read for it.
func LabelOf(files host.Files, dir, num string) (title, guid string) {
	title, guid, _ = labelOf(files, dir, num)
	return title, guid
}

func labelOf(files host.Files, dir, num string) (title, guid string, from heard) {
	title, guid = KernelLabel(files, dir)
	if title == "" || guid == "" {
		t, g := readLabel(files, "run/udev/data/b"+num, "E:ID_PART_ENTRY_NAME=", "E:ID_PART_ENTRY_UUID=")
		from = heard{title: title == "" && t != "", guid: guid == "" && g != ""}
		title, guid = cmp.Or(title, t), cmp.Or(guid, g)
	}
	return title, guid, from
}

// KernelLabel is LabelOf for what the kernel itself has of it.
func KernelLabel(files host.Files, dir string) (title, guid string) {
	return readLabel(files, dir+"/uevent", "PARTNAME=", "PARTUUID=")
}

func readLabel(files host.Files, file, name, id string) (title, guid string) {
	b, _ := files.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if t, ok := strings.CutPrefix(line, name); ok && title == "" && !strings.HasPrefix(t, ledger.NewPrefix) {
			title = strings.TrimSpace(t)
		}
		if g, ok := strings.CutPrefix(line, id); ok && guid == "" {
			guid = strings.ToLower(strings.TrimSpace(g))
		}
	}
	return title, guid
}
