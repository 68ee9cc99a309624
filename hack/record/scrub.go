package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
)

// secretFiles are attributes whose whole text names one drive or host.
var secretFiles = map[string]bool{
	"serial": true, "wwid": true, "nguid": true, "eui": true, "uuid": true, "sas_address": true, "hostnqn": true, "hostid": true, "enclosure_identifier": true, "subsysnqn": true,
}

// secretKeys are udev properties of that kind.
var secretKeys = regexp.MustCompile(`^E:(?:ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|ID_WWN|ID_WWN_WITH_EXTENSION|ID_FS_UUID(?:_ENC|_SUB)?|ID_FS_LABEL(?:_ENC)?|ID_PART_TABLE_UUID|ID_PART_ENTRY_UUID|DM_UUID|DM_VG_NAME|DM_LV_NAME)=(.+)$`)

// secretForms are texts that are identities wherever they stand.
var secretForms = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-z]{6}(?:-[0-9a-z]{4}){5}-[0-9a-z]{6}\b|(?:naa\.|eui\.|wwn-0x|0x)[0-9a-f]{16,32}`)

// scrubber replaces identities by others of the same length and alphabet, always
// the same for the same one, so that what belongs together still does.
type scrubber struct {
	key   []byte
	pairs [][2][]byte // what is found, what takes its place; longest first
}

// scrubbed is the recording without identities: in files, names and links.
func (r *recording) scrubbed() *recording {
	s := &scrubber{key: make([]byte, 32)}
	_, _ = rand.Read(s.key) // never fails (crypto/rand)
	secrets := map[string]bool{}
	add := func(text string) {
		if text = strings.TrimSpace(text); telling(text) {
			secrets[text] = true
		}
	}
	add(r.host)
	for name, b := range r.files {
		text := string(b)
		switch {
		case secretFiles[path.Base(name)]:
			for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" .:\n\t", c) }) {
				if len(word) >= 6 { // the words "naa" and "eui" are no secrets
					add(word)
				}
			}
		case path.Base(name) == "vpd_pg80" && len(b) > 4:
			add(text[4:])
		}
		if strings.HasPrefix(name, "run/udev/data/") {
			for line := range strings.Lines(text) {
				if m := secretKeys.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
					add(m[1])
				}
			}
		}
		if !strings.HasPrefix(name, "pages/") {
			for _, form := range secretForms.FindAllString(text, -1) {
				add(form)
			}
		}
	}
	for text := range secrets {
		s.hide(text)
	}
	slices.SortFunc(s.pairs, func(a, b [2][]byte) int {
		if n := len(b[0]) - len(a[0]); n != 0 {
			return n
		}
		return bytes.Compare(a[0], b[0])
	})
	out := &recording{host: string(s.bytes([]byte(r.host))), files: map[string][]byte{}, links: map[string]string{}, drives: r.drives}
	for name, b := range r.files {
		b = s.bytes(b)
		if strings.HasSuffix(name, "/ata-identify.bin") {
			fixChecksum(b)
		}
		out.files[string(s.bytes([]byte(name)))] = b
	}
	for name, target := range r.links {
		out.links[string(s.bytes([]byte(name)))] = string(s.bytes([]byte(target)))
	}
	return out
}

// telling keeps what can name one thing among many. All zeroes and short numbers
// stand in too many places that mean something else.
func telling(text string) bool {
	distinct := map[rune]bool{}
	number := true
	for _, c := range text {
		distinct[c] = true
		number = number && c >= '0' && c <= '9'
	}
	return len(distinct) >= 4 && len(text) >= 4 && (!number || len(text) >= 8)
}

var hexPart = regexp.MustCompile(`(?i)[0-9a-f]{16,}`)

// hide adds every form that an identity takes: as text, with the bytes of each
// word swapped as ATA keeps strings, and hexadecimal ones as bytes.
func (s *scrubber) hide(text string) {
	other := s.pseudonym(text)
	add := func(a, b []byte) { s.pairs = append(s.pairs, [2][]byte{a, b}) }
	add([]byte(text), []byte(other))
	if len(text)%2 == 1 {
		add(swapped(text+" "), swapped(other+" "))
	} else {
		add(swapped(text), swapped(other))
	}
	if under := strings.ReplaceAll(text, " ", "_"); under != text {
		add([]byte(under), []byte(strings.ReplaceAll(other, " ", "_")))
	}
	digits := strings.ReplaceAll(text, "-", "")
	if h := hexPart.FindString(digits); h != "" && len(h)%2 == 0 {
		if raw, err := hex.DecodeString(h); err == nil {
			o := hexPart.FindString(strings.ReplaceAll(other, "-", ""))
			if rawOther, err := hex.DecodeString(o); err == nil && len(rawOther) == len(raw) {
				add(raw, rawOther)
			}
		}
	}
}

// pseudonym draws a text of the same shape. The first hex digit of a number
// stays: it is the kind of a worldwide name.
func (s *scrubber) pseudonym(text string) string {
	// The digest of the digits alone, so that "0x5000..", "naa.5000.." and "5000.."
	// get the same ones.
	core := text
	if h := hexPart.FindString(strings.ReplaceAll(text, "-", "")); h != "" {
		core = strings.ToLower(h)
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(core))
	stream := mac.Sum(nil)
	isHex := core != text || hexPart.MatchString(text)
	start := 0
	if i := hexPart.FindStringIndex(text); i != nil {
		start = i[0]
	}
	out, n := []byte(text), 0
	for i, c := range out {
		if i < start || (isHex && i == start) {
			continue
		}
		x := int(stream[n%len(stream)])
		switch {
		case isHex && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f'):
			out[i] = "0123456789abcdef"[x%16]
		case isHex && c >= 'A' && c <= 'F':
			out[i] = "0123456789ABCDEF"[x%16]
		case c >= '0' && c <= '9':
			out[i] = byte('0' + x%10)
		case c >= 'A' && c <= 'Z':
			out[i] = byte('A' + x%26)
		case c >= 'a' && c <= 'z':
			out[i] = byte('a' + x%26)
		default:
			continue
		}
		n++
	}
	return string(out)
}

func swapped(text string) []byte {
	b := []byte(text)
	for i := 0; i+1 < len(b); i += 2 {
		b[i], b[i+1] = b[i+1], b[i]
	}
	return b
}

func (s *scrubber) bytes(b []byte) []byte {
	for _, p := range s.pairs {
		b = bytes.ReplaceAll(b, p[0], p[1])
	}
	return b
}

// fixChecksum makes the integrity word of identify data right again where it is
// used (ACS-4 7.13.6.93: signature A5h, then a byte that makes the sum zero).
func fixChecksum(b []byte) {
	if len(b) < 512 || b[510] != 0xa5 {
		return
	}
	var sum byte
	for _, c := range b[:511] {
		sum += c
	}
	b[511] = -sum
}
