package drivebay

import (
	"cmp"
	"strings"
)

// Hardware is what the firmware of a machine says about it (SMBIOS, else the device tree). A field that
// cannot be read, or in which the vendor left a placeholder, is empty.
type Hardware struct {
	Vendor  string  `json:"vendor,omitempty"`
	Product string  `json:"product,omitempty"`
	Version string  `json:"version,omitempty"`
	SKU     string  `json:"sku,omitempty"`
	Serial  string  `json:"serial,omitempty"` // of the product, else of the chassis
	Chassis Chassis `json:"chassis,omitzero"`
	Board   Board   `json:"board,omitzero"`
	BIOS    BIOS    `json:"bios,omitzero"`
}

// Chassis is the case of a machine.
type Chassis struct {
	Type     string `json:"type,omitempty"` // "Rack mount chassis"
	Vendor   string `json:"vendor,omitempty"`
	Serial   string `json:"serial,omitempty"`
	AssetTag string `json:"assetTag,omitempty"`
}

// Board is the main board of a machine.
type Board struct {
	Vendor  string `json:"vendor,omitempty"`
	Product string `json:"product,omitempty"`
	Version string `json:"version,omitempty"`
	Serial  string `json:"serial,omitempty"`
}

// BIOS is the firmware of a machine.
type BIOS struct {
	Vendor  string `json:"vendor,omitempty"`
	Version string `json:"version,omitempty"`
	Date    string `json:"date,omitempty"`
}

// Server names the machine for an operator in front of a rack: "server ACME R740, serial ABC123". It is
// empty if the firmware names neither a product nor a serial number.
func (h *Hardware) Server() string {
	if h == nil {
		return ""
	}
	text := cmp.Or(h.Product, h.Board.Product)
	if vendor := cmp.Or(h.Vendor, h.Board.Vendor); text != "" && !strings.HasPrefix(strings.ToLower(text), strings.ToLower(vendor)) {
		text = vendor + " " + text
	}
	switch {
	case text != "" && h.Serial != "":
		return "server " + text + ", serial " + h.Serial
	case h.Serial != "":
		return "server with serial " + h.Serial
	case text != "":
		return "server " + text
	}
	return ""
}

// Place returns where a slot is: the server, as far as its firmware names it, and the bay.
func (m *Machine) Place(s Slot) string {
	text, bay := m.Hardware.Server(), ""
	if s.Bay != "" {
		bay = "bay " + s.Bay
	}
	if text != "" && bay != "" {
		text += ", "
	}
	return text + bay
}
