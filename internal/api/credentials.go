package api

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/drivebay/drivebay"
)

// Credentials are what a client needs at an address that requires TLS and a token.
type Credentials struct {
	TokenFile string // holds the bearer token; "": the client sends none
	CAFile    string // certificates that the daemon's is checked with; "": those of the system
}

// DialWith returns a client as Dial does. A token goes over an encrypted connection or to this machine
// only.
func DialWith(address string, with Credentials) *Client {
	c := Dial(address)
	c.tokenFile = with.TokenFile
	if with.CAFile == "" || c.err != nil {
		return c
	}
	pem, err := os.ReadFile(with.CAFile)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(pem) {
		err = fmt.Errorf("%s: %w: it contains no certificate", with.CAFile, drivebay.ErrInvalid)
	}
	if err != nil {
		c.err = fmt.Errorf("certificates for %s: %w", address, err)
		return c
	}
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return c
}

// authorize adds the token to a request.
func (c *connection) authorize(req *http.Request) error {
	if c.tokenFile == "" || c.base == unixBase {
		return nil
	}
	if req.URL.Scheme != "https" && !isLoopback(req.URL.Hostname()) {
		return fmt.Errorf("%s: %w: the token is not sent over a connection without TLS: write https://", c.url, drivebay.ErrRefused)
	}
	token, err := ReadToken(c.tokenFile)
	if err != nil {
		return fmt.Errorf("%s: %w", c.url, err)
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	return nil
}
