package main

import (
	"encoding/binary"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
)

// identities are the texts that identify one drive, filesystem or host.
type identities struct {
	hex    map[string]bool // worldwide names and UUIDs: digits only, lower case
	text   map[string]bool // serials and the like
	public map[string]bool // models, vendors, firmware: never an identity
}

// These forms are identities anywhere in a text.
var (
	uuidForm = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	nameForm = regexp.MustCompile(`(?i)(?:\b(?:naa\.|eui\.|uuid\.|wwn-0x|0x)|\b3)([0-9a-f]{32}|[0-9a-f]{16})\b`)
	lvmForm  = regexp.MustCompile(`\b[0-9A-Za-z]{6}(?:-[0-9A-Za-z]{4}){5}-[0-9A-Za-z]{6}\b`)
	dmLVM    = regexp.MustCompile(`\bLVM-([0-9A-Za-z]{32})([0-9A-Za-z]{32})?`)
	dmLUKS   = regexp.MustCompile(`\bCRYPT-[A-Z0-9]+-([0-9a-f]{32})\b`)
	udevLine = regexp.MustCompile(`(?m)^E:(ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|ID_FS_UUID|ID_FS_UUID_SUB|ID_PART_TABLE_UUID|ID_PART_ENTRY_UUID|MD_UUID)=(.+)$`)
)

// publicFiles are attributes that many drives share.
var publicFiles = map[string]bool{"model": true, "vendor": true, "rev": true, "firmware_rev": true, "product": true}

// find collects the identities in all files of a recording.
func (r *recording) find() *identities {
	id := &identities{hex: map[string]bool{}, text: map[string]bool{}, public: map[string]bool{}}
	for name, b := range r.files {
		if publicFiles[path.Base(name)] {
			for _, word := range strings.Fields(string(b)) {
				id.public[word] = true
			}
		}
	}
	id.addHost(r.host)
	for name, b := range r.files {
		base := strings.TrimSuffix(path.Base(name), ".bin")
		if read, ok := binaryFiles[base]; ok {
			read(id, b)
			continue
		}
		id.forms(string(b))
		switch {
		case base == "serial":
			id.addText(string(b))
		case base == "eui", base == "nguid": // "00 25 38 5b 71 b0 12 34"
			id.addHex(strings.NewReplacer(" ", "", "-", "", "\n", "").Replace(string(b)))
		case base == "subsysnqn", base == "hostnqn":
			id.addText(string(b)[strings.LastIndex(string(b), ":")+1:])
		case strings.HasPrefix(name, "run/udev/data/"):
			id.udev(string(b))
		}
	}
	return id
}

func (id *identities) forms(text string) {
	for _, u := range uuidForm.FindAllString(text, -1) {
		id.addHex(strings.ReplaceAll(u, "-", ""))
	}
	for _, m := range nameForm.FindAllStringSubmatch(text, -1) {
		id.addHex(m[1])
	}
	for _, u := range lvmForm.FindAllString(text, -1) {
		id.addText(strings.ReplaceAll(u, "-", ""))
	}
	for _, form := range []*regexp.Regexp{dmLVM, dmLUKS} {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			for _, part := range m[1:] {
				id.addText(part)
			}
		}
	}
}

// udev collects the identities in E:KEY=value lines. ID_SERIAL is model and serial if
// there is an ID_SERIAL_SHORT; only without that one it is the serial.
func (id *identities) udev(text string) {
	short := strings.Contains(text, "\nE:ID_SERIAL_SHORT=")
	for _, m := range udevLine.FindAllStringSubmatch(text, -1) {
		if m[1] != "ID_SERIAL" || !short {
			id.addText(m[2])
		}
	}
}

// binaryFiles are pages and attributes with identities at known offsets.
var binaryFiles = map[string]func(*identities, []byte){
	"ata-identify": identify,
	"scsi-vpd-89":  func(id *identities, b []byte) { identify(id, b[min(60, len(b)):]) }, // SAT-4 12.4.2
	"vpd_pg89":     func(id *identities, b []byte) { identify(id, b[min(60, len(b)):]) },
	"scsi-vpd-80":  unitSerial,
	"vpd_pg80":     unitSerial,
	"scsi-vpd-83":  designators,
	"vpd_pg83":     designators,
	// Vendors keep the head of the serial in the vendor-specific part (SPC-5 table 151).
	"scsi-inquiry": func(id *identities, b []byte) { id.addText(part(b, 36, 56)) },
	"inquiry":      func(id *identities, b []byte) { id.addText(part(b, 36, 56)) },
	// NVM Express base 2.0: SN, FGUID, SUBNQN; NGUID, EUI64.
	"nvme-identify-controller": func(id *identities, b []byte) {
		id.addText(part(b, 4, 24))
		id.addHex(hex.EncodeToString([]byte(part(b, 112, 128))))
		nqn := part(b, 768, 1024)
		id.forms(nqn)
		id.addText(nqn[strings.LastIndex(nqn, ":")+1:])
	},
	"nvme-identify-namespace": func(id *identities, b []byte) {
		id.addHex(hex.EncodeToString([]byte(part(b, 104, 120))))
		id.addHex(hex.EncodeToString([]byte(part(b, 120, 128))))
	},
}

// part returns the bytes from..to, as many of them as there are.
func part(b []byte, from, to int) string { return string(b[min(from, len(b)):min(to, len(b))]) }

// identify reads IDENTIFY DEVICE: serial in words 10-19, name in words 108-111.
func identify(id *identities, b []byte) {
	id.addText(string(swapped(part(b, 20, 40))))
	name := []byte(part(b, 216, 224))
	for i := 0; i+1 < len(name); i += 2 {
		binary.BigEndian.PutUint16(name[i:], binary.LittleEndian.Uint16(name[i:]))
	}
	id.addHex(hex.EncodeToString(name))
}

func unitSerial(id *identities, b []byte) {
	if len(b) > 4 {
		id.addText(part(b, 4, 4+int(b[3])))
	}
}

// designators reads the device identification page (SPC-5 7.7.6).
func designators(id *identities, b []byte) {
	for at := 4; at+4 <= len(b); {
		size := int(b[at+3])
		body := part(b, at+4, at+4+size)
		switch kind := b[at+1] & 0x0f; {
		case b[at]&0x0f == 1 && (kind == 2 || kind == 3): // EUI-64 and NAA, binary
			id.addHex(hex.EncodeToString([]byte(body)))
		case kind == 1: // T10: vendor and model may come first, the serial is last
			if words := strings.Fields(body); len(words) > 1 {
				id.addText(words[len(words)-1])
			}
		case kind == 0:
			id.addText(body)
		default:
			id.forms(body)
		}
		at += 4 + size
	}
}

// addHost adds the name of the host, with and without its domain.
func (id *identities) addHost(name string) {
	label, _, _ := strings.Cut(name, ".")
	for _, n := range []string{name, label} {
		if len(n) >= 4 && n != "localhost" {
			id.addText(n)
		}
	}
}

func (id *identities) addHex(digits string) {
	digits = strings.ToLower(digits)
	if raw, err := hex.DecodeString(digits); err == nil && len(raw) >= 8 && distinct(digits) >= 3 {
		id.hex[digits] = true
	}
}

func (id *identities) addText(text string) {
	text = strings.Trim(text, " \t\r\n\x00_")
	printable := !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
	if len(text) >= 3 && printable && distinct(text) >= 2 && !id.public[text] {
		id.text[text] = true
	}
}

func distinct(text string) int {
	b := []byte(text)
	slices.Sort(b)
	return len(slices.Compact(b))
}
