package compare

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// row says what a leaf of the document must read, by what we published: the
// value as smartctl writes it, nil where we have none.
type row struct {
	kind string
	ours func(d *drivebay.Drive, l *leaf) any
}

// exempt is a part of the document that is not compared, and why. It covers all
// leaves of that kind and below it.
type exempt struct {
	kind string
	why  string
	when func(d *drivebay.Drive, l *leaf) bool // nil: always
}

// table is what is known about the leaves of one kind of document.
type table struct {
	rows    []row
	exempts []exempt
}

// tables are chosen by what smartctl says the drive speaks.
func tableOf(doc *document) table {
	t := table{slices.Clone(commonRows), slices.Clone(commonExempts)}
	family := map[string]table{"ATA": {ataRows, ataExempts}, "NVMe": {nvmeRows, nvmeExempts}, "SCSI": {scsiRows, scsiExempts}}[doc.text("device.protocol")]
	return table{append(t.rows, family.rows...), append(t.exempts, family.exempts...)}
}

// row finds the row of a leaf. A number beyond 2^53 stands twice in a document,
// the second time exactly and as a string under "<key>_s" (smartmontools,
// json.cpp, set_unsafe_uint64).
func (t table) row(l *leaf) (row, bool) {
	kind := l.kind()
	if base, exact := strings.CutSuffix(l.path, "_s"); exact && l.doc.at[base] != nil {
		kind = strings.TrimSuffix(kind, "_s")
	}
	i := slices.IndexFunc(t.rows, func(r row) bool { return r.kind == kind })
	if i < 0 {
		return row{}, false
	}
	return t.rows[i], true
}

// exempted reports whether a leaf is one that is not compared.
func (t table) exempted(d *drivebay.Drive, l *leaf) bool {
	kind := l.kind()
	return slices.ContainsFunc(t.exempts, func(e exempt) bool {
		below, covered := strings.CutPrefix(kind, e.kind)
		covered = covered && (below == "" || below[0] == '.' || below[0] == '[')
		return covered && (e.when == nil || e.when(d, l))
	})
}

// Evidence compares a drive with the document that `smartctl -x -j` wrote about
// it, leaf by leaf, and returns how many leaves were compared. Each leaf is
// compared, exempted with a reason, or a difference itself. Both sides must have
// looked at the drive with nothing between that moves its counters.
func Evidence(smartctlJSON []byte, d drivebay.Drive) (compared int, differences []Difference) {
	doc, err := read(smartctlJSON)
	if err != nil {
		return 0, []Difference{{Smartctl: err.Error(), Ours: d.ID}}
	}
	if d.Evidence == nil {
		differences = append(differences, Difference{Smartctl: "a look at the drive", Ours: "no evidence"})
		d.Evidence = &drivebay.Evidence{}
	}
	t := tableOf(doc)
	for _, l := range doc.leaves {
		if t.exempted(&d, l) {
			continue
		}
		r, known := t.row(l)
		if !known {
			differences = append(differences, Difference{l.path, l.text, "not looked at"})
			continue
		}
		compared++
		if ours := r.ours(&d, l); !same(l.text, ours) {
			differences = append(differences, Difference{l.path, l.text, written(ours)})
		}
	}
	if compared == 0 {
		differences = append(differences, Difference{Smartctl: "nothing of a drive", Ours: d.ID})
	}
	return compared, differences
}

// same compares a leaf with what we have. We hold a counter that is too wide at
// the largest 64-bit number.
func same(text string, ours any) bool {
	if ours == nil {
		return false
	}
	if n, ok := ours.(uint64); ok && n == math.MaxUint64 {
		wide, whole := new(big.Int).SetString(text, 10)
		return whole && wide.Cmp(new(big.Int).SetUint64(n)) >= 0
	}
	return text == fmt.Sprint(ours)
}

func written(ours any) string {
	if ours == nil {
		return nothing
	}
	return fmt.Sprint(ours)
}

// told is a value that may be absent.
func told[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// filled is a value whose zero says that it is not known.
func filled[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// agreed is a value that stands in the drive and in its evidence: both must say
// the same before smartctl is asked.
func agreed(published, evidence any) any {
	if published != evidence {
		return fmt.Sprintf("%s, but %s in the evidence", written(published), written(evidence))
	}
	return published
}
