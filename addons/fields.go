package addons

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// required holds the required fields of each request. NodeReclaimSpace needs one of two
// paths; its handler checks that.
var required = map[protoreflect.Name][]protoreflect.Name{
	"NodeHealerRequest":             {"volume_id", "volume_path"},
	"NodeReclaimSpaceRequest":       {"volume_id"},
	"ControllerReclaimSpaceRequest": {"volume_id"},
	"EncryptionKeyRotateRequest":    {"volume_id"},
}

// Limits of fields in bytes, the same as in CSI, to whose limits the protos refer.
const (
	maxString = 128
	maxMap    = 4 << 10
	maxPath   = 4095 // PATH_MAX without the terminating zero
)

var sizes = map[protoreflect.Name]int{
	"volume_path": maxPath, "staging_target_path": maxPath, // paths override the general limit
	"encryption_key": maxMap, // as if it were among the secrets
}

// checkFields checks a request, and the messages in it, against the rules for its fields.
func checkFields(m protoreflect.Message) error {
	for _, name := range required[m.Descriptor().Name()] {
		if !m.Has(m.Descriptor().Fields().ByName(name)) {
			return fmt.Errorf("%s: %w: the field is required", name, drivebay.ErrInvalid)
		}
	}
	var err error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if err = checkSize(mapSize(v.Map()), maxMap); err == nil && f.Name() == "secrets" {
				err = checkKeys(v.Map())
			}
		case f.IsList():
			err = checkSize(listSize(v.List()), maxMap)
		case f.Message() != nil:
			err = checkFields(v.Message())
		case f.Kind() == protoreflect.StringKind:
			err = checkString(f.Name(), v.String())
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f.Name(), err)
		}
		return err == nil
	})
	return err
}

func checkKeys(m protoreflect.Map) (err error) {
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		if !rpc.IsSecretKey(key.String()) {
			err = fmt.Errorf("%w: a key consists of letters, digits, '-', '_' and '.'", drivebay.ErrInvalid)
		}
		return err == nil
	})
	return err
}

func mapSize(m protoreflect.Map) (size int) {
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		size += len(key.String()) + len(v.String())
		return true
	})
	return size
}

// listSize returns the size of a list of strings: no request has a list of other values.
func listSize(l protoreflect.List) (size int) {
	for i := range l.Len() {
		size += len(l.Get(i).String())
	}
	return size
}

func checkString(name protoreflect.Name, s string) error {
	limit, ok := sizes[name]
	if !ok {
		limit = maxString
	}
	switch {
	case limit == maxPath && strings.ContainsRune(s, 0):
		return fmt.Errorf("%w: the path contains a NUL byte", drivebay.ErrInvalid)
	case limit == maxPath && !strings.HasPrefix(s, "/"):
		return fmt.Errorf("%w: the path is not absolute", drivebay.ErrInvalid)
	}
	return checkSize(len(s), limit)
}

func checkSize(size, limit int) error {
	if size > limit {
		return fmt.Errorf("%w: %d bytes; the limit is %d bytes", drivebay.ErrInvalid, size, limit)
	}
	return nil
}
