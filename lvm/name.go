package lvm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/drivebay/drivebay"
)

// prefix begins the name of every group and volume that we make.
const prefix = "drivebay-"

// Lengths. lvm(8) allows 127 characters, but the device-mapper name of a volume is
// group and volume with every hyphen doubled, and must fit DM_NAME_LEN (128,
// linux/dm-ioctl.h) together with the longest suffix of a hidden volume
// ("_rimage_0", "-tpool", "_extracted").
const (
	maxName    = 127
	maxDMName  = 127 - 20
	maxTag     = 1024
	escapeByte = '#'
)

// The names that LVM reserves (lvm(8), "VALID NAMES").
var (
	nameChars  = regexp.MustCompile(`^[a-zA-Z0-9+_.][a-zA-Z0-9+_.-]*$`)
	reservedAt = []string{"snapshot", "pvmove"}
	reservedIn = []string{"_cdata", "_cmeta", "_corig", "_cvol", "_wcorig", "_iorig", "_imeta", "_mimage", "_mlog", "_pmspare",
		"_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin"}
)

// MapperName returns the device-mapper name of a logical volume
// (lib/misc/lvm-string.c: hyphens are doubled).
func MapperName(group, volume string) string {
	double := strings.NewReplacer("-", "--")
	return double.Replace(group) + "-" + double.Replace(volume)
}

// GroupName returns the name of the group with this id.
func GroupName(id string) (string, error) { return ourName("volume group", id) }

// VolumeName returns the name of the volume with this id.
func VolumeName(id string) (string, error) { return ourName("logical volume", id) }

func ourName(what, id string) (string, error) {
	if id == "" {
		return "", fmt.Errorf("%s: %w: the ID is empty", what, drivebay.ErrInvalid)
	}
	return prefix + id, checkName(what, prefix+id)
}

// CheckNames returns an error if LVM or device-mapper does not accept the names.
func CheckNames(group, volume string) error {
	if err := checkName("volume group", group); err != nil {
		return err
	}
	if err := checkName("logical volume", volume); err != nil {
		return err
	}
	if n := len(MapperName(group, volume)); n > maxDMName {
		return fmt.Errorf("logical volume %s/%s: %w: the device-mapper name has %d characters; the limit is %d", group, volume, drivebay.ErrInvalid, n, maxDMName)
	}
	return nil
}

func checkName(what, name string) error {
	bad := func(why string) error { return fmt.Errorf("%s %q: %w: %s", what, name, drivebay.ErrInvalid, why) }
	switch {
	case !nameChars.MatchString(name):
		return bad("a name consists of letters, digits and + _ . - and does not begin with a hyphen")
	case name == "." || name == "..":
		return bad("the name is reserved for a directory")
	case len(name) > maxName:
		return bad(fmt.Sprintf("the name has more than %d characters", maxName))
	}
	for _, r := range reservedAt {
		if strings.HasPrefix(name, r) {
			return bad("LVM reserves names that begin with " + r)
		}
	}
	for _, r := range reservedIn {
		if strings.Contains(name, r) {
			return bad("LVM reserves names that contain " + r)
		}
	}
	return nil
}

// Tag marks every group that we made.
const Tag = "drivebay"

// making marks a volume from its creation until it is complete.
const making = "drivebay-making"

var keyChars = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// EncodeTag packs a key and any value into one LVM tag, "drivebay:KEY=VALUE". Tags
// consist of letters, digits and _ + . - / = ! : & # (lvm(8), "TAGS"); every other byte
// of a value, and # itself, becomes # and two hexadecimal digits.
func EncodeTag(key, value string) (string, error) {
	if !keyChars.MatchString(key) {
		return "", fmt.Errorf("tag %q: %w: a key consists of lowercase letters, digits and hyphens", key, drivebay.ErrInvalid)
	}
	var b strings.Builder
	b.WriteString(Tag + ":" + key + "=")
	for i := range len(value) {
		if c := value[i]; c != escapeByte && tagByte(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%c%02x", escapeByte, c)
		}
	}
	if b.Len() > maxTag {
		return "", fmt.Errorf("tag %q: %w: has %d characters; the limit is %d", key, drivebay.ErrInvalid, b.Len(), maxTag)
	}
	return b.String(), nil
}

// DecodeTag unpacks what EncodeTag made; ok is false for every other tag.
func DecodeTag(tag string) (key, value string, ok bool) {
	rest, ours := strings.CutPrefix(tag, Tag+":")
	key, packed, found := strings.Cut(rest, "=")
	if !ours || !found || !keyChars.MatchString(key) {
		return "", "", false
	}
	var b []byte
	for i := 0; i < len(packed); i++ {
		if packed[i] != escapeByte {
			b = append(b, packed[i])
			continue
		}
		if i+3 > len(packed) {
			return "", "", false
		}
		one, err := hex.DecodeString(packed[i+1 : i+3])
		if err != nil {
			return "", "", false
		}
		b = append(b, one...)
		i += 2
	}
	// One value has one tag: a tag that EncodeTag would write differently is not ours.
	if again, err := EncodeTag(key, string(b)); err != nil || again != tag {
		return "", "", false
	}
	return key, string(b), true
}

func tagByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_+.-/=!:&#", c) >= 0
}

func checkTag(tag string) error {
	if tag == "" || len(tag) > maxTag || tag[0] == '-' {
		return fmt.Errorf("tag %q: %w: a tag has 1 to %d characters and does not begin with a hyphen", tag, drivebay.ErrInvalid, maxTag)
	}
	for i := range len(tag) {
		if !tagByte(tag[i]) {
			return fmt.Errorf("tag %q: %w: LVM allows no %q", tag, drivebay.ErrInvalid, tag[i])
		}
	}
	return nil
}

// NewPVUUID returns a UUID for a new physical volume: 32 letters and digits in LVM's
// groups of 6-4-4-4-4-4-6.
func NewPVUUID() string {
	return grouped(rand.Text() + rand.Text()) // 26 characters each, A-Z and 2-7
}

// PVUUID returns the same UUID for the same text.
func PVUUID(text string) string {
	sum := sha256.Sum256([]byte("pv\x00" + text))
	return grouped(base32.StdEncoding.EncodeToString(sum[:]))
}

func grouped(text string) string {
	var parts []string
	for _, n := range []int{6, 4, 4, 4, 4, 4, 6} {
		parts, text = append(parts, text[:n]), text[n:]
	}
	return strings.Join(parts, "-")
}
