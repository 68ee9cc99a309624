package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a certificate with its key in two files. It is read again when a file has changed;
// while the new files are not a pair, the one before stays in use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read [2]stamp // of the files that were read last
}

// stamp tells whether a file has changed.
type stamp struct {
	at   time.Time
	size int64
}

// TLS returns a configuration with the certificate in two files.
func TLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.current(), nil
	}}, nil
}

// current returns the certificate for the next connection.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.log.Error("the changed certificate is not used", "op", "tls", "err", err)
	}
	return c.pair
}

// refresh reads the files if one has changed. Files that are wrong are not read again before they change.
func (c *certificate) refresh() error {
	var now [2]stamp
	for i, name := range []string{c.certFile, c.keyFile} {
		st, err := os.Stat(name)
		if err != nil {
			return c.failed(now, fmt.Errorf("certificate: %w", err))
		}
		now[i] = stamp{st.ModTime(), st.Size()}
	}
	if now == c.read {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return c.failed(now, fmt.Errorf("certificate %s: %w", c.certFile, err))
	}
	if c.pair != nil {
		c.log.Info("certificate read again", "op", "tls", "file", c.certFile)
	}
	c.pair, c.read = &pair, now
	return nil
}

// failed reports an error once for each state of the files.
func (c *certificate) failed(now [2]stamp, err error) error {
	if now == c.read && c.pair != nil {
		return nil
	}
	c.read = now
	return err
}
