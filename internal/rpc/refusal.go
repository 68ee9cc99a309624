package rpc

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codes is what errors are on the wire. The first that matches counts.
type Codes []struct {
	Err  error
	Code codes.Code
}

// Find finds the row of an error. One that has a code already keeps it.
func (t Codes) Find(err error) (row error, code codes.Code, ok bool) {
	var already interface{ GRPCStatus() *status.Status }
	if errors.As(err, &already) {
		return err, already.GRPCStatus().Code(), true
	}
	for _, c := range t {
		if errors.Is(err, c.Err) {
			return c.Err, c.Code, true
		}
	}
	return nil, codes.OK, false
}

// MaxText bounds a status message: it travels in a header.
const MaxText = 1024

// refusal is an error on the wire. Whatever has been put into it, what the request
// brought in confidence does not go out with it.
func refusal(req proto.Message, code codes.Code, err error) error {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	for _, word := range confidential(req.ProtoReflect()) {
		text = strings.ReplaceAll(text, word, "(withheld)")
	}
	return status.Error(code, Clip(strings.ToValidUTF8(text, "\uFFFD"), MaxText))
}

// TokensKey is where Kubernetes puts the tokens of a pod into a volume's context
// (CSIDriver.spec.tokenRequests): they are secrets, whatever the field is called.
const TokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// confidential are the words of a request that are told to nobody: secrets, and
// mount flags, which can contain some. The longest come first. A word of one or two
// letters is everywhere, and no secret.
func confidential(m protoreflect.Message) []string {
	var words []string
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		secret, _ := proto.GetExtension(f.Options(), csi.E_CsiSecret).(bool)
		switch {
		case f.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				if secret || strings.HasPrefix(key.String(), TokensKey) {
					words = append(words, v.String())
				}
				return true
			})
		case f.Name() == "mount_flags":
			for i := range v.List().Len() {
				flag := v.List().Get(i).String()
				_, value, _ := strings.Cut(flag, "=")
				words = append(words, flag, value)
			}
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				words = append(words, confidential(v.List().Get(i).Message())...)
			}
		case f.Message() != nil && !f.IsList():
			words = append(words, confidential(v.Message())...)
		case secret && f.Kind() == protoreflect.StringKind:
			words = append(words, v.String())
		}
		return true
	})
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) <= 2 })
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words
}

// Clip cuts a string at a rune so that it has no more than limit bytes.
func Clip(s string, limit int) string {
	const dots = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + dots
}
