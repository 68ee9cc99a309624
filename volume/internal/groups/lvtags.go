package groups

import (
	"slices"

	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// IDOfLV returns the id in the tags of a logical volume, if the volume has the name of that id.
func IDOfLV(lv *lvm.LV) string {
	id := partitions.TagOf(lv, KeyID)
	if name, err := lvm.VolumeName(id); err != nil || name != lv.Name {
		return ""
	}
	return id
}

const KeyWhat = "what" // volume or snapshot

const KeyID = "id"

const KeyName = "name"

const KeyMode = "mode"

const KeyFS = "fs"

const KeyUUID = "uuid" // of the filesystem

const KeyLUKS = "luks" // and of the header of an encrypted one

const KeyWipe = "wipe"

const KeyClass = "class"

const KeySource = "source"

const KeyState = "state"

const HalfMade = "making" // of state: it is being made or wiped

// Tags encodes pairs of key and value as LVM tags.
func Tags(pairs map[string]string) ([]string, error) {
	var out []string
	for key, value := range pairs {
		if value == "" {
			continue
		}
		t, err := lvm.EncodeTag(key, value)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.Sort(out)
	return out, nil
}

// StateTag returns the tag of a volume that is being made or wiped.
func StateTag() string {
	t, _ := lvm.EncodeTag(KeyState, HalfMade) // both are constants that fit
	return t
}

// RemovingTag returns the tag that a volume has beside StateTag when its removal has begun: it was finished before, and can have data.
func RemovingTag() string {
	t, _ := lvm.EncodeTag("removing", "yes") // both are constants that fit
	return t
}

// TagsOf decodes the tags of a logical volume.
func TagsOf(lv *lvm.LV) map[string]string {
	out := map[string]string{}
	for _, t := range lv.Tags {
		if key, value, ok := lvm.DecodeTag(t); ok {
			out[key] = value
		}
	}
	return out
}
