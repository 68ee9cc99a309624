package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/filesystem"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"go.yaml.in/yaml/v3"
)

// Fault is a fault of a drive. The drive is named by its bay, or by kernel name or serial number.
type Fault struct {
	Bay   string `yaml:"bay" json:"bay,omitempty"`
	Drive string `yaml:"drive" json:"drive,omitempty"`
	Fault string `yaml:"fault" json:"fault"`
	Args  Args   `yaml:"args" json:"args,omitempty"`
}

// Args are the arguments of a fault. Numbers and booleans may be written without quotes.
type Args map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (a *Args) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*a = Args{}
	for k, v := range raw {
		text := string(v)
		if strings.HasPrefix(text, `"`) {
			if err := json.Unmarshal(v, &text); err != nil {
				return err
			}
		} else if strings.ContainsAny(text[:1], "{[n") {
			return fmt.Errorf("argument %s: want a text or a number", k)
		}
		(*a)[k] = text
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler. It keeps every scalar as written.
func (a *Args) UnmarshalYAML(n *yaml.Node) error {
	var raw map[string]yaml.Node
	if err := n.Decode(&raw); err != nil {
		return err
	}
	*a = Args{}
	for k, v := range raw {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: argument %s: want a text or a number", v.Line, k)
		}
		(*a)[k] = v.Value
	}
	return nil
}

// FaultDoc explains a fault.
type FaultDoc struct {
	Name string `json:"name"`
	Args string `json:"args,omitempty"`
	Text string `json:"text"`
}

// FaultNames lists all faults, the ones to try first at the top.
func FaultNames() []FaultDoc {
	var docs []FaultDoc
	for _, f := range faultTable {
		docs = append(docs, f.FaultDoc)
	}
	return docs
}

// Injector applies faults to a machine.
type Injector struct {
	devices *block.Devices
	mounts  *filesystem.Mounter
}

func New(d *block.Devices, m *filesystem.Mounter) *Injector { return &Injector{d, m} }

// Inject applies a fault.
func (x *Injector) Inject(f Fault) error {
	x.devices.Mu.Lock()
	defer x.devices.Mu.Unlock()
	row, err := findFault(&f)
	if err != nil {
		return err
	}
	x.devices.AsKernel(block.WriterFault, func() { err = x.apply(f, row) })
	return err
}

func (x *Injector) apply(f Fault, row *faultRow) error {
	if row.fs != nil && (row.do == nil || filesystem.VolumeAt(x.mounts, f.Bay+f.Drive) != nil) {
		return x.injectFS(&f, row)
	}
	d, err := x.target(&f)
	if err != nil {
		return err
	}
	if !d.Present && !row.absent {
		return fmt.Errorf("fault %s: drive %s is not in the machine: return or heal it first", f.Fault, d.Label())
	}
	if err := row.do(x, d, arguments{f.Args}); err != nil {
		return fmt.Errorf("fault %s on drive %s: %w", f.Fault, d.Label(), err)
	}
	return nil
}

// injectFS applies a fault to filesystems.
func (x *Injector) injectFS(f *Fault, row *faultRow) error {
	devices, err := x.aimFS(f)
	if err != nil {
		return fmt.Errorf("fault %s: %w", f.Fault, err)
	}
	var errs []error
	for _, d := range devices {
		if err := row.fs(x, d, arguments{f.Args}); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == len(devices) { // filesystems that cannot have the fault are skipped if another can
		return fmt.Errorf("fault %s: %w", f.Fault, errs[0])
	}
	return nil
}

// Check returns an error if a fault of a script can never happen. A filesystem need not exist yet.
// The caller holds the lock or has the machine to itself.
func (x *Injector) Check(f *Fault) error {
	row, err := findFault(f)
	if err == nil && row.fs == nil {
		_, err = x.target(f)
	}
	return err
}

// findFault returns the table row of the fault and refuses unknown arguments.
func findFault(f *Fault) (*faultRow, error) {
	i := slices.IndexFunc(faultTable, func(r faultRow) bool { return r.Name == f.Fault })
	if i < 0 {
		var names []string
		for _, r := range faultTable {
			names = append(names, r.Name)
		}
		return nil, fmt.Errorf("fault %q: %w: want one of %s", f.Fault, kernel.ErrInvalid, strings.Join(names, ", "))
	}
	row := &faultTable[i]
	for _, k := range slices.Sorted(maps.Keys(f.Args)) {
		if !slices.Contains(row.keys(), k) {
			return nil, fmt.Errorf("fault %s: argument %q: %w: it takes %s", f.Fault, k, kernel.ErrInvalid, cmp.Or(row.Args, "none"))
		}
	}
	return row, nil
}

// keys returns the names of the arguments, which Args shows as "n=1 rename=false".
func (r *faultRow) keys() []string {
	var keys []string
	for field := range strings.FieldsSeq(r.Args) {
		k, _, _ := strings.Cut(field, "=")
		keys = append(keys, k)
	}
	return keys
}

// target returns the drive that the fault names.
func (x *Injector) target(f *Fault) (*block.Drive, error) {
	if (f.Bay == "") == (f.Drive == "") {
		return nil, fmt.Errorf("fault %s: %w: give either a bay or a drive", f.Fault, kernel.ErrInvalid)
	}
	d, err := x.devices.Find(f.Bay, f.Drive)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.Fault, err)
	}
	return d, nil
}

// arguments parses the arguments of a fault.
type arguments struct{ args Args }

func (a arguments) text(key, usual string) string { return cmp.Or(a.args[key], usual) }

func (a arguments) number(key string, usual, most uint64) (uint64, error) {
	text := a.args[key]
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("%s=%s: %w: want a number up to %d", key, text, kernel.ErrInvalid, most)
	}
	return n, nil
}

func (a arguments) flag(key string) (bool, error) {
	switch text := a.args[key]; text {
	case "", "false", "no", "0":
		return false, nil
	case "true", "yes", "1":
		return true, nil
	default:
		return false, fmt.Errorf("%s=%s: %w: want true or false", key, text, kernel.ErrInvalid)
	}
}

// Troubles returns the names of the drive's present faults.
func (x *Injector) Troubles(d *block.Drive) []string {
	var names []string
	for _, t := range []struct {
		name string
		on   bool
	}{
		{"vanish", !d.Present}, {"hang", d.Faults.Hang != nil}, {"slow", d.Faults.Slow > 0}, {"eio", d.Faults.Eio}, {"unreadable", len(d.Faults.Bad) > 0}, {"offline", d.Faults.Offline},
		{"nvme-dead", d.Faults.Dead}, {"permission", d.Faults.Denied}, {"read-only", d.Faults.ReadOnly}, {"garbage", d.Spoilt.Garbage}, {"short-pages", d.Spoilt.ShortPages},
		{"bad-checksum", d.Spoilt.BadChecksum}, {"counters-max", d.Spoilt.CountersMax}, {"selftest-fail", d.Spoilt.TestsFail},
		{"sysfs-flicker", d.Faults.Flicker}, {"uevent-storm", d.Faults.Calm != nil}, {"standby", d.Asleep},
		{"resize", d.Size != d.Born.Size}, {"identity", d.Identity != d.Born.Identity}, {"age", d.Age.Age != d.Born.Age.Age},
	} {
		if t.on {
			names = append(names, t.name)
		}
	}
	return append(names, x.fsTroubles(d)...)
}
