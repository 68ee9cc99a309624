package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serveTCP serves on TCP with the checks of an address until the test ends.
func serveTCP(t *testing.T, access Access) (addr string) {
	t.Helper()
	l, err := ListenTCP(t.Context(), "127.0.0.1:0", access)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := full(newEngine(1))
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-ended })
	return l.Addr().String()
}

// requestAs sends a request and returns the status, the body and the headers.
func requestAs(t *testing.T, client *http.Client, url, host, token string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// A page that a browser has loaded from elsewhere reads nothing: its requests name another host.
func TestHostIsChecked(t *testing.T) {
	addr := serveTCP(t, Access{Hosts: []string{"node-1", "node-1.example.org"}})
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:10748": 200, "10.1.2.3": 200, "[::1]": 200, "[::1]:10748": 200, "[fe80::1%eth0]:1": 200, "localhost": 200, "LocalHost:1": 200, "localhost.": 200,
		"node-1": 200, "NODE-1:10748": 200, "node-1.example.org.": 200,
		"attacker.example": 421, "attacker.example:10748": 421, "node-1.attacker.example": 421, "127.0.0.1.attacker.example": 421, "localhost.attacker.example": 421, "xnode-1": 421, "0x7f000001": 421,
	} {
		if code, body, _ := requestAs(t, http.DefaultClient, "http://"+addr+"/api/v1/drives", host, ""); code != want || want == 421 && (!strings.Contains(body, `"misdirected"`) || strings.Contains(body, "naa-")) {
			t.Errorf("Host %q: %d %s", host, code, body)
		}
	}
	// HTTP/1.0 needs no Host; such a request is refused.
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /api/v1/drives HTTP/1.0\r\n\r\n")
	if answer, _ := io.ReadAll(c); !strings.Contains(string(answer), " 421 ") {
		t.Errorf("no Host: %s", answer)
	}
}

func TestTokenIsRequired(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	set := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("first\n")
	addr := serveTCP(t, Access{TokenFile: file})
	check := func(when, path, token string, want int) {
		t.Helper()
		code, body, header := requestAs(t, http.DefaultClient, "http://"+addr+path, "127.0.0.1", token)
		if code != want || want == 401 && header.Get("WWW-Authenticate") == "" || want != 200 && strings.Contains(body, "naa-") {
			t.Errorf("%s: %s with %q: %d %s", when, path, token, code, body)
		}
	}
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/drives", "/api/v1/openapi.yaml", "/nowhere"} {
		for _, token := range []string{"", "first", "Bearer", "Bearer ", "Bearer firs", "Bearer firstx", "Basic first", "Bearer FIRST"} {
			check("wrong", path, token, 401)
		}
	}
	check("no token", "/healthz", "", 200)
	check("right", "/api/v1/drives", "Bearer first", 200)
	check("scheme", "/api/v1/drives", "bearer first", 200)
	set("second")
	check("changed", "/api/v1/drives", "Bearer first", 401)
	check("changed", "/api/v1/drives", "Bearer second", 200)
	set("")
	check("empty", "/api/v1/drives", "Bearer ", 503)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("missing", "/api/v1/drives", "Bearer second", 503)
}

// certify writes a certificate for 127.0.0.1 with a name, and its key.
func certify(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	secret, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err = errors.Join(err, keyErr); err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	return pool
}

// A changed certificate is used by the next connection; files that are no pair change nothing.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	first := certify(t, dir, "first")
	var log strings.Builder
	config, err := TLS(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTCP(t, Access{TLS: config})
	served := func(pool *x509.CertPool) string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
		resp, err := client.Get("https://" + addr + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("status %d", resp.StatusCode)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := served(first); got != "first" {
		t.Errorf("served %q", got)
	}
	second := certify(t, dir, "second, with a longer name")
	if got := served(second); !strings.HasPrefix(got, "second") {
		t.Errorf("served %q after the change", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("half a certi"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := served(second); !strings.HasPrefix(got, "second") {
			t.Errorf("served %q after the damage", got)
		}
	}
	if n := strings.Count(log.String(), "the changed certificate is not used"); n != 1 {
		t.Errorf("%d errors logged:\n%s", n, log.String())
	}
	if _, err := TLS(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a start with a damaged certificate")
	}
	if _, err := TLS(filepath.Join(dir, "none"), filepath.Join(dir, "tls.key"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a start without a certificate")
	}
}

// A client that begins a handshake and stalls is disconnected, like one that sends half a header.
func TestStalledHandshake(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, "first")
	config, err := TLS(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
		server := full(newEngine(1))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- server.Serve(ctx, Listener{Listener: tls.NewListener(limit(p, 1), config), Access: &Access{}})
		}()
		began := time.Now()
		c := p.dial()
		_, _ = c.Write([]byte{22, 3, 1})
		_, _ = io.Copy(io.Discard, c)
		if took := time.Since(began); took > headerTime {
			t.Errorf("disconnected after %s", took)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A client with the token and the certificate reads an address that requires both; it sends the token to no
// other machine in the clear.
func TestClientWithCredentials(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, "first")
	cert, key, token := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := TLS(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTCP(t, Access{TokenFile: token, TLS: config})
	for _, row := range []struct {
		url, want string
		with      Credentials
	}{
		{"https://" + addr, "", Credentials{token, cert}},
		{"https://" + addr, "Bearer TOKEN", Credentials{"", cert}},
		{"https://" + addr, "certificate", Credentials{token, ""}},
		{"https://" + addr, "contains no certificate", Credentials{token, token}},
		{"https://" + addr, "no such file", Credentials{token, dir + "/none"}},
		{"https://" + addr, "no such file", Credentials{dir + "/none", cert}},
		{"http://192.0.2.1:1", "not sent over a connection without TLS", Credentials{token, ""}},
	} {
		c := DialWith(row.url, row.with)
		s, err := c.Drives(t.Context())
		if row.want == "" && (err != nil || len(s.Drives) != 2) || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s with %+v: %v, want %q", row.url, row.with, err, row.want)
		}
		c.Close()
	}
}
