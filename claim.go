package drivebay

import (
	"fmt"
	"strings"
	"time"
)

// Claim is the permission to use a drive. The daemon writes nothing to a drive
// without one.
type Claim struct {
	By    ClaimedBy `json:"by"`
	Since time.Time `json:"since"`
}

// ClaimedBy is the source of a claim. Only the same source can withdraw it.
type ClaimedBy string

const (
	ClaimedByOperator ClaimedBy = "operator"      // drivebay claim
	ClaimedByConfig   ClaimedBy = "configuration" // a selector of the configuration matches
)

// TakesVolumes reports whether new volumes may be made on a drive.
func (d *Drive) TakesVolumes() bool {
	return d.Claim != nil && !d.Cordoned && d.Health == HealthGood && len(d.Refusals()) == 0
}

// Refusals returns the reasons why nothing may be written to a drive, whatever
// was requested: drivebay never overwrites foreign data. The drive may be claimed if the list is
// empty. An unknown property is a reason.
func (d *Drive) Refusals() []string {
	var out []string
	refuse := func(holds bool, why string) {
		if holds {
			out = append(out, why)
		}
	}
	refuse(d.Status != StatusOnline, "its status is "+d.Status.String())
	refuse(d.IdentityIssue != "", "it cannot be distinguished from others: "+d.IdentityIssue)
	refuse(d.Copy != "", d.Copy)
	refuse(d.SizeIssue != "", d.SizeIssue)
	refuse(d.System, "the machine runs from this drive")
	refuse(d.ReadOnly, "it is write-protected")
	refuse(d.Size == 0, "its size is unknown")
	refuse(d.Usage != UsageInUse, "its usage is "+d.Usage.String()+", not IN_USE")
	for _, u := range d.Uses { // a volume of ours in use does not prevent another one
		refuse(!u.Ours, u.refusal())
	}
	content := d.Content.refusal()
	refuse(content != "", content)
	return out
}

func (u Use) refusal() string {
	text := "in use: " + u.Kind
	if u.Device != "" {
		text += " of " + u.Device
	}
	if u.What != "" {
		text += ", " + u.What
	}
	return text
}

// refusal returns why the content forbids writes. Only a drive that reads back
// blank, or that holds nothing but our data, may be written to.
func (c Content) refusal() string {
	switch c.Kind {
	case ContentBlank, ContentOurs:
		return ""
	case ContentForeign:
		var formats []string
		for _, s := range c.Signatures {
			format := s.Format
			if s.Label != "" {
				format += " " + fmt.Sprintf("%q", s.Label)
			}
			formats = append(formats, format)
		}
		if len(formats) == 0 && c.Reason != "" {
			formats = []string{c.Reason}
		}
		return "it has foreign content: " + strings.Join(formats, ", ")
	}
	if c.Reason != "" {
		return "its content cannot be read: " + c.Reason
	}
	return "its content was not read yet"
}
