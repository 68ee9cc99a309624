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

// Codes maps errors to gRPC codes. The first match counts.
type Codes []struct {
	Err  error
	Code codes.Code
}

// Find returns the code of an error. An error that has a code already keeps it.
func (t Codes) Find(err error) (code codes.Code, ok bool) {
	var already interface{ GRPCStatus() *status.Status }
	if errors.As(err, &already) {
		return already.GRPCStatus().Code(), true
	}
	for _, c := range t {
		if errors.Is(err, c.Err) {
			return c.Code, true
		}
	}
	return codes.OK, false
}

// MaxText limits a status message, which gRPC sends in a header.
const MaxText = 1024

// refusal converts an error to a gRPC status. It replaces every confidential word of the
// request in the text.
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

// TokensKey is the key of a volume's context under which Kubernetes sends the tokens of a
// pod (CSIDriver.spec.tokenRequests): secrets in a field that is not marked as secret.
const TokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// confidential returns the words of a request that must not be disclosed: secrets, and
// mount flags, which can contain some. The longest come first. It omits words of one or
// two letters: they occur everywhere and are not secret.
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

// Clip cuts a string between two runes so that it has at most limit bytes.
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
