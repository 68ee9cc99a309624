package smartctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Bits of smartctl's exit status (smartctl(8), "EXIT STATUS").
const (
	exitOpenFailed = 1 << 1
	exitFailing    = 1 << 3
)

// Document is the result of one smartctl document.
type Document struct {
	Evidence  *drivebay.Evidence
	Transport drivebay.Transport
}

// Parse reads one document and returns its evidence.
func Parse(b []byte) (*drivebay.Evidence, error) {
	doc, err := Read(b)
	if err != nil {
		return nil, err
	}
	return doc.Evidence, nil
}

// Read decodes one document. It fails only if the document has no evidence at all; the error then
// has the messages of smartctl.
func Read(b []byte) (*Document, error) {
	root, err := decode(b)
	if err != nil {
		return nil, err
	}
	if !speaksOf(root) {
		return nil, nothing(root)
	}
	ev := &drivebay.Evidence{Source: source(root), Protocol: protocol(root)}
	if t, ok := root.at("local_time", "time_t").int64(); ok && t > 0 {
		ev.At = time.Unix(t, 0).UTC()
	}
	identity(ev, root)
	common(ev, root)
	read := map[drivebay.Protocol]func(*drivebay.Evidence, node){
		drivebay.ProtocolATA:  ata,
		drivebay.ProtocolNVMe: nvme,
		drivebay.ProtocolSCSI: scsi,
	}[ev.Protocol]
	if read != nil {
		read(ev, root)
	}
	ev.Type = medium(ev, root)
	// smartctl reports an error for every page of a drive without SMART.
	expected := len(ev.Problems) > 0 && ev.Problems[0].Expected
	ev.Problems = append(ev.Problems, root.t.problems...)
	if root.t.lost {
		ev.Problems = append(ev.Problems, drivebay.Problem{Page: "document", Text: "a part of the evidence cannot be decoded", Lost: true})
	}
	for _, m := range messages(root) {
		if len(ev.Problems) < 2*maxProblems {
			ev.Problems = append(ev.Problems, drivebay.Problem{Text: "smartctl: " + m, Expected: expected})
		}
	}
	return &Document{Evidence: ev, Transport: transport(root, ev)}, nil
}

func decode(b []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return node{}, errors.New("smartctl document: truncated")
		}
		return node{}, fmt.Errorf("smartctl document: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return node{}, errors.New("smartctl document: data after its end")
	}
	if _, ok := v.(map[string]any); !ok {
		return node{}, fmt.Errorf("smartctl document: %w: not an object", drivebay.ErrInvalid)
	}
	return node{t: &tree{}, v: v}, nil
}

// speaksOf reports whether a document has data of a drive. A document about a failed attempt names
// the device, but has no data from it.
func speaksOf(root node) bool {
	for _, key := range []string{
		"smart_status", "model_name", "scsi_model_name", "scsi_product", "product", "serial_number",
		"ata_smart_attributes", "ata_smart_data", "ata_device_statistics",
		"nvme_smart_health_information_log", "scsi_error_counter_log", "scsi_grown_defect_list",
	} {
		if root.at(key).there() {
			return true
		}
	}
	return false
}

func nothing(root node) error {
	if said := messages(root); len(said) > 0 {
		return fmt.Errorf("smartctl: %s", strings.Join(said, "; "))
	}
	if status, ok := root.at("smartctl", "exit_status").int(); ok {
		if status&exitOpenFailed != 0 {
			return fmt.Errorf("smartctl: the device could not be opened (exit status %d)", status)
		}
		return fmt.Errorf("smartctl document: contains no drive (exit status %d)", status)
	}
	return fmt.Errorf("smartctl document: %w: contains no drive", drivebay.ErrInvalid)
}

// messages returns the warnings and errors of smartctl.
func messages(root node) []string {
	var out []string
	for _, m := range root.at("smartctl", "messages").list() {
		if s := m.at("string").text(); s != "" && m.at("severity").text() != "information" {
			out = append(out, s)
		}
	}
	return out
}

func source(root node) string {
	s := "smartctl"
	for i, v := range root.at("smartctl", "version").list() {
		if n, ok := v.int(); ok && i < 3 {
			s += map[bool]string{true: " ", false: "."}[i == 0] + fmt.Sprint(n)
		}
	}
	return s
}

// verdict returns the drive's own verdict. Without a status the exit status can mean FAILED, and
// nothing means PASSED.
func verdict(root node) drivebay.Verdict {
	// The status is the byte of a process: anything else was written by another tool.
	if status, ok := root.at("smartctl", "exit_status").within(255); ok && status&exitFailing != 0 {
		return drivebay.VerdictFailed
	}
	switch passed, ok := root.at("smart_status", "passed").bool(); {
	case !ok:
		return drivebay.VerdictUnknown
	case passed:
		return drivebay.VerdictPassed
	}
	return drivebay.VerdictFailed
}

// common decodes the fields that smartctl writes for every kind of drive.
func common(ev *drivebay.Evidence, root node) {
	ev.Verdict = verdict(root)
	ev.Temperature = ptr(root.at("temperature", "current").int())
	ev.PowerOnHours = ptr(root.at("power_on_time", "hours").uint())
	ev.PowerCycles = ptr(root.at("power_cycle_count").uint())
	if used, ok := root.at("endurance_used", "current_percent").within(255); ok {
		percent := int(used)
		ev.PercentUsed = &percent
	}
	mode := strings.ToUpper(root.at("power_mode", "ata_string").text())
	ev.Standby = strings.Contains(mode, "STANDBY") || strings.Contains(mode, "SLEEP")
	if available, ok := root.at("smart_support", "available").bool(); ok && !available {
		ev.Problems = append(ev.Problems, drivebay.Problem{Page: "smart", Text: "the drive has no SMART", Expected: true})
	}
}
