package smartctl

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// maxProblems is the largest number of problems that one document adds.
const maxProblems = 24

// tree holds the problems found while a document is decoded.
type tree struct {
	problems []drivebay.Problem
	lost     bool // a part with evidence cannot be decoded
}

func (t *tree) problem(page, format string, args ...any) {
	if len(t.problems) < maxProblems {
		t.problems = append(t.problems, drivebay.Problem{Page: page, Text: fmt.Sprintf(format, args...)})
	}
}

// node is one value in the document. A missing value, or null, is a valid node without a value:
// every method returns the zero value.
type node struct {
	t    *tree
	path string
	v    any
}

// at returns the value below the object keys.
func (n node) at(keys ...string) node {
	for _, k := range keys {
		if n.v == nil {
			return node{t: n.t}
		}
		obj, ok := n.v.(map[string]any)
		if !ok {
			n.wrong("an object")
			return node{t: n.t}
		}
		n = node{t: n.t, path: joined(n.path, k), v: obj[k]}
	}
	return n
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (n node) there() bool { return n.v != nil }

func (n node) wrong(want string) {
	n.t.problem(n.path, "want %s, have %.40s", want, strings.ReplaceAll(fmt.Sprint(n.v), "\n", " "))
	if evidence[strings.FieldsFunc(n.path+".", func(r rune) bool { return r == '.' || r == '[' })[0]] {
		n.t.lost = true
	}
}

// evidence holds the parts of a document that a verdict rests on.
var evidence = map[string]bool{
	"smart_status": true, "ata_smart_attributes": true, "ata_device_statistics": true, "ata_pending_defects_log": true,
	"ata_smart_error_log": true, "ata_smart_self_test_log": true, "nvme_smart_health_information_log": true,
	"nvme_self_test_log": true, "nvme_error_information_log": true, "scsi_error_counter_log": true,
	"scsi_grown_defect_list": true, "scsi_pending_defects": true, "endurance_used": true,
}

// list returns the elements of an array.
func (n node) list() []node {
	if n.v == nil {
		return nil
	}
	arr, ok := n.v.([]any)
	if !ok {
		n.wrong("an array")
		return nil
	}
	out := make([]node, len(arr))
	for i, v := range arr {
		out[i] = node{t: n.t, path: n.path + "[" + strconv.Itoa(i) + "]", v: v}
	}
	return out
}

// text returns a string, trimmed and valid UTF-8.
func (n node) text() string {
	if n.v == nil {
		return ""
	}
	s, ok := n.v.(string)
	if !ok {
		n.wrong("a string")
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "?"))
}

func (n node) bool() (value, ok bool) {
	if n.v == nil {
		return false, false
	}
	b, ok := n.v.(bool)
	if !ok {
		n.wrong("true or false")
	}
	return b, ok
}

func (n node) isTrue() bool {
	b, ok := n.bool()
	return b && ok
}

// number returns the text of a number; some tools write numbers as strings.
func (n node) number() (string, bool) {
	switch v := n.v.(type) {
	case nil:
		return "", false
	case json.Number:
		return v.String(), true
	case string:
		return strings.TrimSpace(v), true
	}
	n.wrong("a number")
	return "", false
}

// uint returns a count. Counts of NVMe have 128 bits: uint limits them to the largest uint64
// instead of wrapping.
func (n node) uint() (uint64, bool) {
	s, ok := n.number()
	if !ok {
		return 0, false
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, true
	}
	f, ok := parseBig(s)
	switch {
	case !ok || f.Sign() < 0:
		n.wrong("a count")
		return 0, false
	case f.Cmp(new(big.Float).SetUint64(math.MaxUint64)) >= 0:
		return math.MaxUint64, true
	}
	u, _ := f.Uint64()
	return u, true
}

// parseBig parses a decimal number; it rejects exponents that take long to compute.
func parseBig(s string) (*big.Float, bool) {
	if len(s) == 0 || len(s) > 64 || !strings.ContainsAny(s[:1], "-0123456789") {
		return nil, false
	}
	if _, exp, found := strings.Cut(strings.ToLower(s), "e"); found && len(exp) > 3 {
		return nil, false
	}
	f, _, err := big.ParseFloat(s, 10, 128, big.ToNearestEven)
	return f, err == nil
}

// wide returns a count that smartctl may have written twice: beyond 2^53 it adds an exact
// "<key>_s" to the plain number, because JavaScript would round that.
func (n node) wide(key string) (uint64, bool) {
	if exact := n.at(key + "_s"); exact.there() {
		return exact.uint()
	}
	return n.at(key).uint()
}

// within returns a count that is at most the limit.
func (n node) within(most uint64) (uint64, bool) {
	u, ok := n.uint()
	if ok && u > most {
		n.wrong(fmt.Sprintf("at most %d", most))
		return 0, false
	}
	return u, ok
}

func (n node) int() (int, bool) {
	s, ok := n.number()
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		n.wrong("a whole number")
	}
	return int(i), err == nil
}

func (n node) int64() (int64, bool) {
	s, ok := n.number()
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n.wrong("a whole number")
	}
	return i, err == nil
}

// ptr converts a value with its ok flag into a pointer, nil if not ok.
func ptr[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}
