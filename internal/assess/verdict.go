// Package assess judges recorded evidence: files of the formats in which operators keep the
// answers of their drives. It serves to test the rules against a fleet.
package assess

import (
	"encoding/json"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// Reason is one finding, without the fields that only a running daemon has.
type Reason struct {
	Code     string          `json:"code"`
	Severity drivebay.Health `json:"severity"`
	Text     string          `json:"text"`
	Advice   string          `json:"advice"`
}

// Verdict is the result of one document.
type Verdict struct {
	File      string // "path", or "path:LINE" where a file holds many
	Serial    string
	Model     string
	Transport drivebay.Transport
	Health    drivebay.Health
	Reasons   []Reason
	Problems  []drivebay.Problem // what could not be decoded or was not there; not what the drive does not claim to have
	Err       error              // why the document could not be read; then only File is set too

	Type drivebay.Type    // for the table
	Own  drivebay.Verdict // the drive's own verdict

	classes []string // the kinds of its evidence
}

// MarshalJSON writes the documented fields: file and error, or file and the verdict.
func (v Verdict) MarshalJSON() ([]byte, error) {
	if v.Err != nil {
		return json.Marshal(struct {
			File  string `json:"file"`
			Error string `json:"error"`
		}{v.File, v.Err.Error()})
	}
	reasons := v.Reasons
	if reasons == nil {
		reasons = []Reason{}
	}
	return json.Marshal(struct {
		File      string             `json:"file"`
		Serial    string             `json:"serial"`
		Model     string             `json:"model"`
		Transport drivebay.Transport `json:"transport"`
		Health    drivebay.Health    `json:"health"`
		Reasons   []Reason           `json:"reasons"`
		Problems  []drivebay.Problem `json:"problems,omitempty"`
	}{v.File, v.Serial, v.Model, v.Transport, v.Health, reasons, v.Problems})
}

// judge assesses one input. A document is one reading of unknown age: rules that need a history or
// a clock find nothing.
func judge(file string, in health.Input, th health.Thresholds) Verdict {
	v := Verdict{File: file, Transport: in.Transport, Type: in.Type}
	if ev := in.Evidence; ev != nil {
		v.Serial, v.Model, v.Own, v.classes = ev.Identity.Serial, ev.Identity.Model, ev.Verdict, classesOf(in)
		for _, p := range ev.Problems {
			if !p.Expected {
				v.Problems = append(v.Problems, p)
			}
		}
		if v.Type == drivebay.TypeUnknown {
			v.Type = ev.Type
		}
	}
	found := health.Assess(in, th)
	v.Health = drivebay.WorstOf(found)
	for _, f := range found {
		v.Reasons = append(v.Reasons, Reason{f.Code, f.Severity, f.Text, f.Advice})
	}
	return v
}
