package hardware

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// maxText bounds a field: a string of SMBIOS has 64 characters at most before version 2.7, and no label
// on a machine is longer.
const maxText = 96

// placeholders are what vendors leave in a field that they do not fill in, without punctuation and in
// lower case. "unknown" is also what ghw returns for a file that it cannot read.
var placeholders = []string{
	"unknown", "unknow", "none", "null", "na", "n a", "not specified", "unspecified", "undefined", "not available", "not applicable", "not present", "not provided", "not set", "no data", "invalid", "empty", "blank", "default", "default string",
	"to be filled by oem", "to be filled", "filled by oem", "oem", "oem default", "other", "test", "sample", "reserved", "standard",
	"system manufacturer", "system product name", "system version", "system serial number", "system sku", "system name", "product name", "product version", "serial number", "sku", "sku number", "part number", "version", "manufacturer", "model",
	"chassis manufacturer", "chassis version", "chassis serial number", "chassis asset tag", "base board serial number", "base board manufacturer", "base board product name", "base board asset tag", "board serial number", "mb serial number",
	"asset tag", "asset tag number", "asset 1234567890", "no asset tag", "no asset information", "no enclosure", "type1productconfigid", "type2 board serial number", "xx", "xxx",
	"0123456789", "01234567890", "123456789", "1234567890", "012345678", "12345678", "1234567", "123456", "12345", "0 0", "x x", "x x x",
}

// said returns what a field says, and "" for one that says nothing. Control characters and what is not
// text are left out.
func said(field string) string {
	text := strings.Join(strings.Fields(drivebay.PlainText(strings.ToValidUTF8(field, ""), maxText)), " ")
	plain := strings.Join(strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(text), "o.e.m", "oem"), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
	if text == "" || plain == "" || slices.Contains(placeholders, plain) || oneCharacter(plain) || strings.HasPrefix(plain, "to be filled by") {
		return ""
	}
	return text
}

// oneCharacter reports whether a text repeats one character: "xxxxxxxx", "00". Two other equal digits may
// be a version.
func oneCharacter(s string) bool {
	s = strings.ReplaceAll(strings.TrimPrefix(s, "0x"), " ", "")
	first, _ := utf8.DecodeRuneInString(s)
	return strings.Trim(s, string(first)) == "" && (len(s) > 2 || first == '0')
}

// hypervisors begin the vendor or the product of a virtual machine, which is no server that a person can
// find (the names are those of systemd-detect-virt(1)).
var hypervisors = []string{"qemu", "kvm", "vmware", "vmw", "virtualbox", "innotek gmbh", "xen", "bochs", "parallels", "bhyve", "virtual machine", "hyper-v", "openstack", "kubevirt", "amazon ec2", "google compute engine", "apple virtualization"}

// virtual reports whether the firmware is that of a virtual machine.
func virtual(h *drivebay.Hardware) bool {
	for _, text := range []string{h.Vendor, h.Product, h.Board.Vendor, h.BIOS.Vendor} {
		if slices.ContainsFunc(hypervisors, func(name string) bool { return strings.HasPrefix(strings.ToLower(text), name) }) {
			return true
		}
	}
	return false
}
