package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// Access is what a TCP address requires of a request.
type Access struct {
	// Hosts are the names by which clients may call the daemon, beside IP addresses and localhost. A page
	// that a browser has loaded from elsewhere cannot read answers by resolving its own name to this
	// machine (DNS rebinding): its requests carry that name.
	Hosts []string
	// TokenFile holds the bearer token; "": none is required.
	TokenFile string
	// TLS encrypts the connections; nil: they are plain.
	TLS *tls.Config
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const maxToken = 4 << 10

var (
	errToken    = failf(http.StatusUnauthorized, "unauthorized", "this address requires the header \"Authorization: Bearer TOKEN\"")
	errNoTokens = failf(http.StatusServiceUnavailable, "unauthorized", "the daemon cannot read its token: see the daemon's log")
)

// guard wraps a handler with the checks of an address. /healthz needs no token: it says nothing but that
// the process answers.
func (s *Server) guard(a *Access, h http.Handler) http.Handler {
	if a == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := a.checkHost(r.Host)
		if err == nil && r.URL.Path != "/healthz" {
			err = s.checkToken(a, r)
		}
		if err == nil {
			h.ServeHTTP(w, r)
			return
		}
		s.answer(func(_ *Server, w http.ResponseWriter, _ *http.Request) error {
			if err.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="drivebay"`)
			}
			return err
		}).ServeHTTP(w, r)
	})
}

// checkHost refuses a request for a name that is not one of this machine.
func (a *Access) checkHost(host string) *Error {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(name, "]"), "["), ".")
	address, _, _ := strings.Cut(name, "%") // a zone is no part of the address
	if net.ParseIP(address) != nil || strings.EqualFold(name, "localhost") {
		return nil
	}
	for _, h := range a.Hosts {
		if name != "" && strings.EqualFold(name, h) {
			return nil
		}
	}
	return failf(http.StatusMisdirectedRequest, "misdirected", "the host %q is not a name of this daemon: use its IP address, or add the name to http.hosts", host)
}

// checkToken compares the token of a request with the one in the file, which is read each time: a new
// token is valid at once.
func (s *Server) checkToken(a *Access, r *http.Request) *Error {
	if a.TokenFile == "" {
		return nil
	}
	want, err := ReadToken(a.TokenFile)
	if err != nil {
		s.opt.Log.Error("no request over TCP can be answered", "op", "token", "err", err)
		return errNoTokens
	}
	scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// The hashes have one length: the time of the comparison says nothing of the token's.
	ours, theirs := sha256.Sum256(want), sha256.Sum256([]byte(strings.TrimSpace(got)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(ours[:], theirs[:]) != 1 {
		return errToken
	}
	return nil
}

// ReadToken returns the bearer token in a file, without the white space around it.
func ReadToken(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	switch b = bytes.TrimSpace(b); {
	case len(b) == 0:
		return nil, fmt.Errorf("token: %s is empty", file)
	case len(b) > maxToken:
		return nil, fmt.Errorf("token: %s is larger than %d bytes", file, maxToken)
	}
	return b, nil
}
