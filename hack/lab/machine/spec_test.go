package machine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	given := []Drive{
		{ID: "a", Kind: SCSI, Serial: "A"},
		{ID: "b", Kind: NVMe, Serial: "B", Paths: 2, Size: 5 << 20, Block: 4096},
		{ID: "c", Kind: SATA, Serial: "C", Block: 512, PhysBlock: 4096},
	}
	s, err := Spec{Drives: given}.complete()
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{Memory: 768, CPUs: 2, Drives: []Drive{
		{ID: "a", Kind: SCSI, Serial: "A", Size: 1 << 30, Block: 512, PhysBlock: 512, Paths: 1},
		{ID: "b", Kind: NVMe, Serial: "B", Size: 5 << 20, Block: 4096, PhysBlock: 4096, Paths: 2},
		{ID: "c", Kind: SATA, Serial: "C", Size: 1 << 30, Block: 512, PhysBlock: 4096, Paths: 1},
	}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("completed to\n%+v, want\n%+v", s, want)
	}
	if given[0].Size != 0 {
		t.Error("the caller's own list was changed")
	}
	if s, err := (Spec{Memory: 512, CPUs: 1}).complete(); err != nil || s.Memory != 512 || s.CPUs != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// many drives of a kind.
func many(n int, k Kind) []Drive {
	var out []Drive
	for i := range n {
		out = append(out, Drive{ID: fmt.Sprintf("%s%d", k, i), Kind: k, Serial: fmt.Sprintf("%s-%d", k, i)})
	}
	return out
}

func serialOf(length int, k Kind) []Drive {
	return []Drive{{ID: "d", Kind: k, Serial: strings.Repeat("S", length)}}
}

func TestRefusals(t *testing.T) {
	folders := map[string]string{"a": "/a", "b": "/b", "c": "/c", "d": "/d"}
	five := map[string]string{"a": "/a", "b": "/b", "c": "/c", "d": "/d", "e": "/e"}
	for name, test := range map[string]struct {
		spec Spec
		want string // of the error; "": it is fine
	}{
		"nothing":                {Spec{}, ""},
		"no id":                  {Spec{Drives: []Drive{{Kind: SCSI, Serial: "A"}}}, "needs an id"},
		"no serial number":       {Spec{Drives: []Drive{{Kind: SCSI, ID: "a"}}}, "a serial number"},
		"no kind":                {Spec{Drives: []Drive{{ID: "a", Serial: "A"}}}, "unknown kind"},
		"unknown kind":           {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: "floppy"}}}, `unknown kind "floppy"`},
		"two ids":                {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: SCSI}, {ID: "a", Serial: "B", Kind: USB}}}, "drive 1: id \"a\""},
		"two serial numbers":     {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: SCSI}, {ID: "b", Serial: "A", Kind: USB}}}, "serial number \"A\" is there"},
		"id like a serial":       {Spec{Drives: []Drive{{ID: "a", Serial: "b", Kind: SCSI}, {ID: "b", Serial: "a", Kind: SCSI}}}, ""},
		"paths of a SCSI drive":  {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: SCSI, Paths: 2}}}, "more than one path"},
		"one path of any":        {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: USB, Paths: 1}}}, ""},
		"six SATA drives":        {Spec{Drives: many(6, SATA)}, ""},
		"seven SATA drives":      {Spec{Drives: many(7, SATA)}, "7 SATA drives"},
		"a hundred SCSI drives":  {Spec{Drives: many(100, SCSI)}, ""},
		"four shares":            {Spec{Shares: folders}, ""},
		"five shares":            {Spec{Shares: five}, "5 shares"},
		"NVMe serial, 20":        {Spec{Drives: serialOf(20, NVMe)}, ""},
		"NVMe serial, 21":        {Spec{Drives: serialOf(21, NVMe)}, "longer than 20"},
		"SATA serial, 20":        {Spec{Drives: serialOf(20, SATA)}, ""},
		"SATA serial, 21":        {Spec{Drives: serialOf(21, SATA)}, "longer than 20"},
		"virtio serial, 20":      {Spec{Drives: serialOf(20, Virtio)}, ""},
		"virtio serial, 21":      {Spec{Drives: serialOf(21, Virtio)}, "longer than 20"},
		"SCSI serial, 36":        {Spec{Drives: serialOf(36, SCSI)}, ""},
		"SCSI serial, 37":        {Spec{Drives: serialOf(37, SCSI)}, "longer than 36"},
		"SAS serial, 37":         {Spec{Drives: serialOf(37, SAS)}, "longer than 36"},
		"USB serial, 37":         {Spec{Drives: serialOf(37, USB)}, "longer than 36"},
		"id of a device":         {Spec{Drives: []Drive{{ID: "vs", Serial: "A", Kind: SCSI}}}, "are ours"},
		"id with a comma":        {Spec{Drives: []Drive{{ID: "a,b", Serial: "A", Kind: SCSI}}}, "QEMU wants"},
		"id of 25":               {Spec{Drives: []Drive{{ID: strings.Repeat("a", 25), Serial: "A", Kind: SCSI}}}, "QEMU wants"},
		"no path at all":         {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: NVMe, Paths: -1}}}, "-1 paths"},
		"slot 21":                {Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: NVMe, Slot: 21}}}, "slot 21"},
		"no memory":              {Spec{Memory: 64}, "64 MiB"},
		"no processor":           {Spec{CPUs: -1}, "processors"},
		"the last one is broken": {Spec{Drives: append(many(3, SCSI), Drive{ID: "bad", Kind: SCSI})}, "drive 3 (bad)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.spec.complete()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestStartRefuses: a description that cannot be is refused before anything is made.
func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if m, err := Start(t.Context(), Options{Cache: dir}, Spec{Drives: many(7, SATA)}); err == nil {
		m.Close()
		t.Error("it started")
	}
	wantEmpty(t, dir)
}
