// Package assess judges recorded evidence: files of any of the kinds in which
// people keep what their drives once said. It is the way to check our judgement
// against a fleet of one's own.
package assess

import (
	"encoding/json"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// Reason is one finding, without what only a running daemon knows.
type Reason struct {
	Code     string          `json:"code"`
	Severity drivebay.Health `json:"severity"`
	Text     string          `json:"text"`
}

// Verdict is what one document came to.
type Verdict struct {
	File      string // "path", or "path:LINE" where a file holds many
	Serial    string
	Model     string
	Transport drivebay.Transport
	Health    drivebay.Health
	Reasons   []Reason
	Err       error // why it could not be read; then nothing else but File is set

	Type drivebay.Type    // for the table
	Own  drivebay.Verdict // what the drive thinks of itself
}

// MarshalJSON writes exactly the fields that are promised for either kind.
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
	}{v.File, v.Serial, v.Model, v.Transport, v.Health, reasons})
}

// judge turns one input into a verdict. A document is one look of unknown age:
// rules that want a past or a clock have neither, and stay silent.
func judge(file string, in health.Input, th health.Thresholds) Verdict {
	v := Verdict{File: file, Transport: in.Transport, Type: in.Type}
	if ev := in.Evidence; ev != nil {
		v.Serial, v.Model, v.Own = ev.Identity.Serial, ev.Identity.Model, ev.Verdict
		if v.Type == drivebay.TypeUnknown {
			v.Type = ev.Type
		}
	}
	found := health.Assess(in, th)
	v.Health = drivebay.WorstOf(found)
	for _, f := range found {
		v.Reasons = append(v.Reasons, Reason{f.Code, f.Severity, f.Text})
	}
	return v
}
