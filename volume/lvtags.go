package volume

import (
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// Tags of logical volumes: they describe a volume whose record is lost.
const (
	keyWhat    = "what" // volume or snapshot
	keyID      = "id"
	keyName    = "name"
	keyMode    = "mode"
	keyFS      = "fs"
	keyUUID    = "uuid" // of the filesystem
	keyLUKS    = "luks" // and of the header of an encrypted one
	keyWipe    = "wipe"
	keyClass   = "class"
	keySource  = "source"
	keyCreated = "created"
	keyState   = "state"
	keyInst    = "instance" // tells it from another one of its name
	halfMade   = "making"   // of state: it is being made or wiped
)

func tags(pairs map[string]string) ([]string, error) {
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

func volumeTags(v *drivebay.Volume) ([]string, error) {
	source := ""
	if v.Source.Snapshot != "" {
		source = "snapshot:" + v.Source.Snapshot
	} else if v.Source.Volume != "" {
		source = "volume:" + v.Source.Volume
	}
	return tags(map[string]string{
		keyWhat: "volume", keyID: v.ID, keyName: v.Name, keyMode: v.Mode.String(), keyFS: v.FSType, keyUUID: v.FSUUID, keyLUKS: v.LUKSUUID,
		keyWipe: v.Parameters[drivebay.ParameterWipe], keyClass: v.Parameters[drivebay.ParameterClass],
		keySource: source, keyCreated: v.Created.UTC().Format(time.RFC3339), keyState: halfMade,
		keyInst: instanceTag(v.Location),
	})
}

// stateTag returns the tag of a volume that is being made or wiped.
func stateTag() string {
	t, _ := lvm.EncodeTag(keyState, halfMade) // both are constants that fit
	return t
}

func tagsOf(lv *lvm.LV) map[string]string {
	out := map[string]string{}
	for _, t := range lv.Tags {
		if key, value, ok := lvm.DecodeTag(t); ok {
			out[key] = value
		}
	}
	return out
}

// tagOf returns one of them, without a map: each listing calls it for every logical volume.
func tagOf(lv *lvm.LV, key string) (value string) {
	for _, t := range lv.Tags {
		if !strings.HasPrefix(t, lvm.Tag+":"+key+"=") {
			continue
		}
		if k, v, ok := lvm.DecodeTag(t); ok && k == key {
			value = v
		}
	}
	return value
}
