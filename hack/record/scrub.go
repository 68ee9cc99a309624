package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
)

// scrubber replaces identities by pseudonyms of the same length and alphabet. An
// identity has the same pseudonym everywhere, so that references still match.
type scrubber struct {
	key  []byte
	used map[string]bool
	// Strong identities mean nothing else and are replaced everywhere. Weak ones, short
	// or plain words, could: they are replaced as whole words, in files that keep identities.
	strong, weak [][2]string
	replacer     *strings.Replacer
}

// scrubbed returns the recording without identities in its files, names and links.
func (r *recording) scrubbed() *recording {
	s := newScrubber(r.find())
	out := &recording{host: s.everywhere(s.words(r.host)), files: map[string][]byte{}, links: map[string]string{}, dirs: map[string]bool{}, drives: r.drives}
	for name, b := range r.files {
		text := s.everywhere(string(b))
		if keepsIdentities(name) {
			text = s.words(text)
		}
		b = []byte(text)
		switch path.Base(name) {
		case "ata-identify.bin":
			fixChecksum(b)
		case "scsi-vpd-89.bin", "vpd_pg89":
			fixChecksum(b[min(60, len(b)):])
		}
		out.files[s.everywhere(name)] = b
	}
	for name, target := range r.links {
		out.links[s.everywhere(name)] = s.everywhere(target)
	}
	for name := range r.dirs {
		out.dirs[s.everywhere(name)] = true
	}
	return out
}

// keepsIdentities reports whether a short word in a file can be a serial.
func keepsIdentities(name string) bool {
	base := path.Base(name)
	_, page := binaryFiles[strings.TrimSuffix(base, ".bin")]
	return page || base == "serial" || base == "wwid" || base == "subsysnqn" || base == "manifest.json" ||
		base == "mountinfo" || strings.HasSuffix(name, "/dm/name") ||
		strings.HasPrefix(name, "run/udev/data/") || strings.HasPrefix(name, "commands/")
}

func newScrubber(id *identities) *scrubber {
	s := &scrubber{key: make([]byte, 32), used: map[string]bool{}}
	_, _ = rand.Read(s.key) // never fails (crypto/rand)
	for _, digits := range slices.Sorted(maps.Keys(id.hex)) {
		s.hideHex(digits)
	}
	for _, text := range slices.Sorted(maps.Keys(id.text)) {
		s.hideText(text)
	}
	longer := func(a, b [2]string) int {
		if n := len(b[0]) - len(a[0]); n != 0 {
			return n
		}
		return strings.Compare(a[0], b[0])
	}
	slices.SortFunc(s.strong, longer)
	slices.SortFunc(s.weak, longer)
	var pairs []string
	for _, p := range s.strong {
		pairs = append(pairs, p[0], p[1])
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// hideHex adds every form of a worldwide name or UUID: digits in both cases,
// dashed, in groups as sysfs prints EUIs, as bytes, as ATA words.
func (s *scrubber) hideHex(digits string) {
	other := s.pseudonym(digits, "0123456789abcdef")
	add := func(form func(string) string) {
		s.strong = append(s.strong, [2]string{form(digits), form(other)})
	}
	add(func(d string) string { return d })
	add(strings.ToUpper)
	add(func(d string) string { b, _ := hex.DecodeString(d); return string(b) })
	add(func(d string) string { b, _ := hex.DecodeString(d); return string(swapped(string(b))) })
	add(func(d string) string {
		var groups []string
		for pair := range slices.Chunk([]byte(d), 2) {
			groups = append(groups, string(pair))
		}
		return strings.Join(groups, " ")
	})
	if len(digits) == 32 {
		dashed := func(d string) string { return strings.Join([]string{d[:8], d[8:12], d[12:16], d[16:20], d[20:]}, "-") }
		add(dashed)
		add(func(d string) string { return strings.ToUpper(dashed(d)) })
	}
}

// hideText adds every form of a serial: plain, with udev's underscores, with the
// dashes of a mapped device, with the bytes of each word swapped as ATA keeps
// strings, and as the hexadecimal digits of which Linux makes NVMe names. LVM's
// UUIDs have dashes or none.
func (s *scrubber) hideText(text string) {
	other := s.pseudonym(text, "")
	list := &s.strong
	if weak(text) {
		list = &s.weak
	}
	add := func(form func(string) string) {
		if from := form(text); !slices.ContainsFunc(*list, func(p [2]string) bool { return p[0] == from }) {
			*list = append(*list, [2]string{from, form(other)})
		}
	}
	add(func(t string) string { return t })
	add(func(t string) string { return strings.ReplaceAll(t, " ", "_") })
	add(func(t string) string { return strings.ReplaceAll(t, "-", "--") }) // device mapper
	add(func(t string) string { return string(swapped(t + strings.Repeat(" ", len(t)%2))) })
	add(func(t string) string { return string(swapped(" " + t + strings.Repeat(" ", (len(t)+1)%2))) }) // right-aligned
	add(func(t string) string { return hex.EncodeToString([]byte(t)) })
	if len(text) == 32 && !strings.Contains(text, "-") {
		add(func(t string) string {
			return strings.Join([]string{t[:6], t[6:10], t[10:14], t[14:18], t[18:22], t[22:26], t[26:]}, "-")
		})
	}
}

// weak reports whether a text could as well be a number or a word.
func weak(text string) bool {
	digits := strings.Count(strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return '#'
		}
		return c
	}, text), "#")
	return len(text) < 6 || digits == 0 || (digits == len(text) && digits < 10) || distinct(text) < 4
}

// pseudonym returns a text of the same shape that no other identity has. The first
// digit of a hexadecimal name stays: it is the kind of name (NAA 5h, 6h).
func (s *scrubber) pseudonym(text, alphabet string) string {
	for round := byte(0); ; round++ {
		var stream []byte
		mac := hmac.New(sha256.New, s.key)
		for len(stream) < len(text) {
			mac.Write(append([]byte(text), round, byte(len(stream))))
			stream = mac.Sum(stream)
		}
		out := []byte(text)
		for i, c := range out {
			from := alphabet
			switch {
			case alphabet != "" && i == 0:
				continue
			case alphabet != "":
			case c >= '0' && c <= '9':
				from = "0123456789"
			case c >= 'A' && c <= 'Z':
				from = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			case c >= 'a' && c <= 'z':
				from = "abcdefghijklmnopqrstuvwxyz"
			default:
				continue
			}
			out[i] = from[int(stream[i])%len(from)]
		}
		if other := string(out); other != text && !s.used[other] || round == 255 {
			s.used[other] = true
			return other
		}
	}
}

func (s *scrubber) everywhere(text string) string { return s.replacer.Replace(text) }

// words replaces weak identities that are whole words.
func (s *scrubber) words(text string) string {
	for _, p := range s.weak {
		var out strings.Builder
		rest := text
		for {
			at := strings.Index(rest, p[0])
			if at < 0 {
				break
			}
			end := at + len(p[0])
			alone := (at == 0 || !alphanumeric(rest[at-1])) && (end == len(rest) || !alphanumeric(rest[end]))
			out.WriteString(rest[:at])
			if alone {
				out.WriteString(p[1])
			} else {
				out.WriteString(p[0])
			}
			rest = rest[end:]
		}
		text = out.String() + rest
	}
	return text
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func swapped(text string) []byte {
	b := []byte(text)
	for i := 0; i+1 < len(b); i += 2 {
		b[i], b[i+1] = b[i+1], b[i]
	}
	return b
}

// fixChecksum corrects the integrity word of identify data if it is used (ACS-4
// 7.13.6.93: signature A5h, then a byte that makes the sum zero).
func fixChecksum(b []byte) {
	if len(b) < 512 || b[510] != 0xa5 {
		return
	}
	b[511] = 0
	var sum byte
	for _, c := range b[:512] {
		sum += c
	}
	b[511] = -sum
}
