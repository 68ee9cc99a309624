package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// recorded is a machine read from a recording: a folder that holds sys/ and other copied parts of a
// machine, such as proc/ and run/udev/data/. A recording made by drivebay also holds
//
//	manifest.json                what was recorded, when
//	pages/NAME/PAGE.bin          what the drive NAME answered
//	pages/NAME/PAGE.err          the error instead, one of refusals
//	commands/ARGV.txt            what a program printed, ARGV joined by spaces
type recorded struct {
	walker
	wallClock
	name string
	at   time.Time // zero if not known
}

// Manifest is the content of manifest.json.
type Manifest struct {
	Format int       `json:"format"`
	Host   string    `json:"host"`
	At     time.Time `json:"at"`
	Kernel string    `json:"kernel"`
}

// ManifestFormat is the version of the layout above.
const ManifestFormat = 1

// Recorded opens a recording made by drivebay, or any copy of a machine's sysfs.
func Recorded(dir string) (Machine, error) {
	if _, err := os.Stat(filepath.Join(dir, "sys")); err != nil {
		inner := filepath.Join(dir, "sysroot")
		if _, innerErr := os.Stat(filepath.Join(inner, "sys")); innerErr != nil {
			return nil, fmt.Errorf("%s is not a recording: it contains no sys/: %w", dir, err)
		}
		dir = inner
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &recorded{walker: walker{abs, true}, name: filepath.Base(abs)}
	b, err := r.ReadFile("manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var m Manifest
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && m.Format != ManifestFormat {
		err = fmt.Errorf("recording format %d is not supported; this program reads format %d", m.Format, ManifestFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("%s/manifest.json: %w", dir, err)
	}
	r.name, r.at = m.Host, m.At
	return r, nil
}

func (r *recorded) Describe() Description { return Description{Name: r.name, Kind: "recorded"} }

// Now returns the time of the recording, so that ages in it keep their meaning, or the current time
// for a folder of unknown age.
func (r *recorded) Now() time.Time {
	if r.at.IsZero() {
		return time.Now()
	}
	return r.at
}

func (r *recorded) Mounts(context.Context) ([]Mount, error) { return new(mountTable).of(r) }

func (r *recorded) readInto(name string, _ []byte) ([]byte, error) { return r.ReadFile(name) }

func (r *recorded) WriteFile(name string, _ []byte) error {
	return fmt.Errorf("write %s: %w: a recording cannot be changed", name, ErrImpossible)
}

// Uevents returns a channel without events.
func (r *recorded) Uevents(ctx context.Context) (<-chan Uevent, error) {
	return never[Uevent](ctx), nil
}

// KernelLog returns a channel without lines.
func (r *recorded) KernelLog(ctx context.Context) (<-chan LogLine, error) {
	return never[LogLine](ctx), nil
}

func never[T any](ctx context.Context) <-chan T {
	ch := make(chan T)
	context.AfterFunc(ctx, func() { close(ch) })
	return ch
}

func (r *recorded) Run(_ context.Context, argv ...string) ([]byte, error) {
	name := strings.ReplaceAll(strings.Join(argv, " "), "/", "_")
	b, err := r.ReadFile("commands/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("%v: %w: not part of the recording", argv, ErrImpossible)
	}
	return b, nil
}

func (r *recorded) OpenDrive(_ context.Context, dev string) (OpenDrive, error) {
	name := path.Base(dev)
	if _, err := r.ReadDir("sys/class/block/" + name); err != nil {
		if _, err := r.ReadDir("sys/block/" + name); err != nil {
			return nil, fmt.Errorf("open %s: %w", dev, ErrGone)
		}
	}
	return &recordedDrive{r, "pages/" + name}, nil
}

// refusals holds the errors that a recording stores by name.
var refusals = map[string]error{
	"unsupported": ErrUnsupported, "standby": ErrStandby, "timeout": ErrTimeout, "permission": ErrPermission, "gone": ErrGone,
}

// RefusalName returns how a recording stores an error: a name that reads back as
// the same error, or the error's text.
func RefusalName(err error) string {
	for name, known := range refusals {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

type recordedDrive struct {
	r   *recorded
	dir string
}

func (d *recordedDrive) Close() error { return nil }

func (d *recordedDrive) Page(_ context.Context, p Page) ([]byte, error) {
	b, err := d.r.ReadFile(d.dir + "/" + string(p) + ".bin")
	if err == nil {
		return b, nil
	}
	why, err := d.r.ReadFile(d.dir + "/" + string(p) + ".err")
	if err != nil {
		return nil, fmt.Errorf("%s: %w: not part of the recording", p, ErrImpossible)
	}
	text := strings.TrimSpace(string(why))
	if known, ok := refusals[text]; ok {
		return nil, fmt.Errorf("%s: %w", p, known)
	}
	return nil, fmt.Errorf("%s: %s", p, text)
}

func (d *recordedDrive) ReadAt([]byte, int64) (int, error) {
	return 0, fmt.Errorf("%w: a recording has no content of drives", ErrImpossible)
}

func (d *recordedDrive) ReadMedium([]byte, int64) (int, error) {
	return 0, fmt.Errorf("direct read: %w: the drive is a recording", ErrUnsupported)
}

func (d *recordedDrive) SelfTest(context.Context, SelfTest) error {
	return fmt.Errorf("self-test: %w: a recording cannot be changed", ErrImpossible)
}
