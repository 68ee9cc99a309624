package smart

import (
	"maps"
	"path"
	"slices"

	"github.com/drivebay/drivebay"
)

// meanings holds the attributes for which a family of drives differs from the customary table.
type meanings map[uint8]meaning

// family holds the meanings of models (and firmware, where it matters). The patterns are those of
// path.Match and match the whole name.
type family struct {
	models   []string
	firmware string // "" for any
	meanings meanings
}

// layout is a family known by the ids of its attributes: the controller's firmware is sold under names
// that no list has all of.
type layout struct {
	ids      []uint8 // all of them
	without  []uint8 // none of them
	meanings meanings
}

func (l layout) has(attrs []drivebay.Attribute) bool {
	return lacksNone(attrs, l.ids) && !slices.ContainsFunc(l.without, func(id uint8) bool { return lacksNone(attrs, []uint8{id}) })
}

// lacksNone reports whether a table has all attributes of some ids.
func lacksNone(attrs []drivebay.Attribute, ids []uint8) bool {
	for _, id := range ids {
		if !slices.ContainsFunc(attrs, func(a drivebay.Attribute) bool { return a.ID == id }) {
			return false
		}
	}
	return true
}

func (f family) has(id drivebay.Identity) bool {
	if f.firmware != "" && !matches(f.firmware, id.Firmware) {
		return false
	}
	for _, m := range f.models {
		if matches(m, id.Model) {
			return true
		}
	}
	return false
}

// matches reports whether a constant pattern matches; a test compiles all patterns, so that
// path.Match never fails.
func matches(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// familyOf returns the meanings of a drive's family: by its model, or else by the ids of a solid-state
// drive's attributes.
func familyOf(id drivebay.Identity, medium drivebay.Type, attrs []drivebay.Attribute) meanings {
	for _, f := range families {
		if f.has(id) {
			return f.meanings
		}
	}
	if medium == ssd {
		for _, l := range layouts {
			if l.has(attrs) {
				return l.meanings
			}
		}
	}
	return nil
}

// with merges tables; later entries override earlier ones.
func with(parts ...meanings) meanings {
	all := meanings{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// families holds all families in order of precedence: the first match applies.
var families = append(hddFamilies, ssdFamilies...)

// hddFamilies holds the families of hard disks. Sources: the drives' product manuals where they
// have a SMART chapter (Seagate, Hitachi, Fujitsu), recorded pages of the models named.
var hddFamilies = []family{
	// 9 counts minutes on this firmware (129691 at a normalized 96); 197 and 198 fill all 48 bits
	// and do not count sectors.
	{[]string{"FUJITSU MHY2*BH"}, "0085000B", meanings{9: inMinutes, 197: {name: vendorName}, 198: {name: vendorName}}},
	{[]string{"FUJITSU MH[YZ]2*BH*"}, "", meanings{240: {name: "Transfer_Error_Rate"}}},
	{[]string{"FUJITSU MHZ2*BJ*"}, "", meanings{9: inMinutes}},
	{[]string{"FUJITSU MH[GHJKLMNRSTUV]2*", "FUJITSU MP[A-G]3*", "FUJITSU M1623TAU"}, "", meanings{9: {"Power_On_Seconds", seconds, 0}}},
	// 197 is larger (282013244) than the number of sectors: it does not count them.
	{[]string{"SAMSUNG HS122JC"}, "", meanings{197: {name: vendorName}, 198: {name: vendorName}}},
	{[]string{"SAMSUNG SV0412H", "SAMSUNG SV1204H"}, "", meanings{9: inHalfMinutes, 194: {"Temperature_Celsius", tens, 0}}},
	{[]string{"SAMSUNG SV*", "SAMSUNG SP40A2H", "SAMSUNG SP80*H", "SAMSUNG MP0[3468]0[24]H", "SAMSUNG MP0804H",
		"SAMSUNG HM0[468]0H[CI]", "SAMSUNG HM120I[CI]", "SAMSUNG HM1[026]0J[CI]"}, "", meanings{9: inHalfMinutes}},
	// The later HM250JI, HM641JI and SP2504C count hours: self-tests and errors are logged at the same numbers.
	{spinPointP80, "*-2[3-9]", meanings{9: inHalfMinutes}},
	{spinPointP80, "*-3[0-4]", meanings{9: inHalfMinutes}},
	{[]string{"Maxtor 6V*", "Maxtor 7[BV]*", "Maxtor STM*"}, "", nil}, // these count hours
	{[]string{"Maxtor *"}, "", meanings{9: inMinutes}},
	{[]string{"HITACHI_DK*", "HTA422020F9AT*", "HE[JN]4230*F9AT00"}, "", meanings{9: inMinutes}},
	{[]string{"TOSHIBA MK??76GSX"}, "GS001A", nil}, // counts hours, like MK??61GSYB
	{[]string{"TOSHIBA MK??51GSY", "TOSHIBA MK??56GSY*", "TOSHIBA MK??61GSY", "TOSHIBA MK??61GSYN", "TOSHIBA MK??76GSX"}, "", meanings{9: inMinutes}},
	{[]string{"TOSHIBA MG0[89]*", "TOSHIBA MG1*"}, "", meanings{27: {name: "MAMR_Health_Monitor"}}},
	{[]string{"ST[1-9]*NM*", "ST[1-9]*V[NEX]*", "ST[1-9]*N[ET]*", "ST[1-9]*DM*-*", "ST[1-9]*LM*"}, "", seagate},
	{[]string{"ST[1-9]*", "MAXTOR ST*"}, "", meanings{1: seagate[1], 7: seagate[7]}},
}

var spinPointP80 = []string{"SAMSUNG SP04[05]1[CN]", "SAMSUNG SP08[0124]2[CN]", "SAMSUNG SP12[0145]3[CN]", "SAMSUNG SP16[0145]4[CN]"}

var (
	inMinutes     = meaning{"Power_On_Minutes", minutes, 0}
	inHalfMinutes = meaning{"Power_On_Half_Minutes", halfMinutes, 0}
)

// seagate splits the error rates: errors in the upper bits, operations in the lower ones (the
// normalized value is a logarithm of their ratio). 188 has three words: all timeouts, those over 5
// s and those over 7.5 s.
var seagate = meanings{
	1:   {"Raw_Read_Error_Rate", over, 0},
	7:   {"Seek_Error_Rate", over, 0},
	9:   {"Power_On_Hours", hours, 0},
	18:  {name: "Head_Health"},
	188: {"Command_Timeout", three, 0},
	195: {"Hardware_ECC_Recovered", over, 0},
}
