package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drivebay/drivebay"
)

// special holds the checks that a tag cannot express.
var special = map[string]func(string) error{
	"api":            checkAPI,
	"csiEndpoint":    checkAPI,
	"addonsEndpoint": checkAPI,
	"nodeID":         checkNodeID,
	"listen":         checkListen,
	"root":           checkAbsolute,
	"stateDir":       checkAbsolute,
	"volumeRoots":    checkRoots,

	"volumes.filesystems": checkFilesystems,

	"kubernetes.kubeconfig": checkFile,

	"http.certFile":          checkFile,
	"http.keyFile":           checkFile,
	"http.tokenFile":         checkFile,
	"replication.secretFile": checkFile,
	"notify.kinds":           checkKinds,
	"notify.webhook":         checkWebhook,
	"notify.secretFile":      checkFile,
	"notify.caFile":          checkFile,
	"notify.command":         checkCommand,
}

// check validates every value and reports the origin of an invalid one.
func (l *loader) check() {
	for _, f := range l.fields {
		if f.Section || l.bad[f.Path] {
			continue
		}
		err := f.check()
		if test := special[f.Path]; err == nil && test != nil {
			err = test(f.Text())
		}
		if err != nil {
			l.failKey(f.Path, l.where(f), err)
		}
	}
	l.checkThresholds()
	l.checkHTTP()
	if len(l.bad) == 0 && l.config.Sim != "" && l.config.Root != "/" {
		l.fail(l.origin["sim"], "sim and root exclude each other: a simulated machine has no root directory")
	}
	if len(l.bad) == 0 {
		l.checkRole()
	}
}

// checkRole refuses keys that a role needs, or that it cannot have.
func (l *loader) checkRole() {
	c := l.config
	at := cmp.Or(l.origin["role"], "default")
	if c.Kubernetes.Page && c.Role != RoleController {
		l.fail(l.origin["kubernetes.page"], "kubernetes.page needs the role controller: a node serves its own page (drivebay ui)")
	}
	switch c.Role {
	case RoleNode:
		if !c.Kubernetes.Enabled {
			l.fail(at, "the role node needs kubernetes.enabled (--kubernetes): the controller reaches the node through objects")
		}
	case RoleController:
		if c.CSIEndpoint == "" {
			l.fail(at, "the role controller needs csiEndpoint (--csi-endpoint): sidecars call it there")
		}
		for key, set := range map[string]bool{
			"sim": c.Sim != "", "claim": len(c.Claim) > 0, "listen": c.Listen != "", "notify.webhook": c.Notify.Webhook != "",
		} {
			if set {
				l.fail(cmp.Or(l.origin[key], at), "%s cannot be used with the role controller: it manages no drives", key)
			}
		}
	}
}

// checkThresholds validates the thresholds together. It reports an error at the origin of a key
// that the message names and that is set.
func (l *loader) checkThresholds() {
	for _, err := range flatten(l.config.Thresholds.Validate()) {
		where := "default"
		for _, f := range l.fields {
			section, key, nested := strings.Cut(f.Path, ".")
			if origin, ok := l.origin[f.Path]; ok && nested && section == "thresholds" && slices.Contains(strings.FieldsFunc(err.Error(), notLetter), key) {
				where = origin
				break
			}
		}
		l.errs = append(l.errs, fmt.Errorf("%s: %w", where, err))
	}
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// flatten returns the errors of a joined error.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func (l *loader) where(f Field) string {
	if where, ok := l.origin[f.Path]; ok {
		return where
	}
	return "default"
}

func (f Field) list() bool {
	_, text := f.value.Addr().Interface().(encoding.TextUnmarshaler)
	return f.value.Kind() == reflect.Slice && !text
}

// check compares a value with the limits in the tags of its field.
func (f Field) check() error {
	if f.oneof != "" && !slices.Contains(strings.Fields(f.oneof), f.Text()) {
		return fmt.Errorf("%q; want one of %s", f.Text(), strings.Join(strings.Fields(f.oneof), ", "))
	}
	if f.min == "" || f.max == "" {
		return nil
	}
	low, high := reflect.New(f.value.Type()).Elem(), reflect.New(f.value.Type()).Elem()
	if err := errors.Join(setText(low, f.min), setText(high, f.max)); err != nil {
		return fmt.Errorf("limits of %s: %w", f.Path, err)
	}
	if number(f.value) < number(low) || number(f.value) > number(high) {
		return fmt.Errorf("%s is not between %s and %s", f.Text(), f.min, f.max)
	}
	return nil
}

func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

// maxSocketPath is the longest path in sun_path of sockaddr_un (unix(7)), without the terminating
// 0.
const maxSocketPath = 107

// SocketPath returns the path of a unix socket in the form unix:///path, unix:/path or /path, or
// "" for another form.
func SocketPath(endpoint string) string {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		path = strings.TrimPrefix(endpoint, "unix:")
	}
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

func checkAPI(s string) error {
	if s == "" {
		return nil
	}
	path := SocketPath(s)
	switch {
	case path == "":
		return fmt.Errorf("%q is not a socket: write it as unix:///run/drivebay/drivebay.sock", s)
	case len(path) > maxSocketPath:
		return fmt.Errorf("%q is longer than the %d bytes that the kernel allows for the path of a socket", s, maxSocketPath)
	}
	return nil
}

// checkNodeID validates the node id: CSI recommends 128 bytes at most (NodeGetInfoResponse). The
// id becomes the value of a label in Kubernetes, which allows 63 letters, digits and -._.
func checkNodeID(s string) error {
	if len(s) > 128 {
		return fmt.Errorf("%q is longer than 128 bytes", s)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q contains a space or another character that is not allowed in the name of a node", s)
	}
	return nil
}

func checkListen(s string) error {
	if s == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address: write it as 127.0.0.1:10748 or :10748", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: port %q is not between 0 and 65535", s, port)
	} else if n == 0 && port != "0" {
		return fmt.Errorf("%q: port %q is not a number", s, port)
	}
	return nil
}

// checkFilesystems accepts only known filesystem types.
func checkFilesystems(text string) error {
	for _, kind := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(drivebay.FSTypes, kind) {
			return fmt.Errorf("%q is unknown; the supported filesystems are %s", kind, strings.Join(drivebay.FSTypes, ", "))
		}
	}
	return nil
}

// checkRoots rejects "/", because a volume could be mounted over any directory then.
func checkRoots(text string) error {
	roots := strings.Split(text, ", ")
	for _, r := range roots {
		if !filepath.IsAbs(r) || filepath.Clean(r) != r || r == "/" {
			return fmt.Errorf("%q is not allowed: want an absolute path without links other than /, such as /var/lib/kubelet", r)
		}
	}
	return nil
}

func checkAbsolute(s string) error {
	if s != "" && !filepath.IsAbs(s) {
		return fmt.Errorf("%q is not an absolute path", s)
	}
	return nil
}
