package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// The headers of a request. The signature is "v1=" and the hexadecimal HMAC-SHA256, by the secret, of
// the time stamp, a dot and the body.
const (
	HeaderTime      = "X-Drivebay-Timestamp" // seconds since 1970, of this attempt
	HeaderSignature = "X-Drivebay-Signature"
	HeaderNotice    = "X-Drivebay-Notice" // the id of the notice: equal when it is sent again
)

const (
	maxSecret = 4 << 10
	maxAnswer = 4 << 10 // bytes of an answer that are read
)

// webhook posts notices to a URL.
type webhook struct {
	url, host  string
	secretFile string
	caFile     string
	agent      string
	clock      Clock
	timeout    time.Duration
}

func newWebhook(opt Options) *webhook {
	w := &webhook{url: opt.Webhook, host: "the webhook", secretFile: opt.SecretFile, caFile: opt.CAFile, agent: "drivebay/" + opt.Version, clock: opt.Clock, timeout: opt.Timeout}
	if u, err := url.Parse(opt.Webhook); err == nil && u.Host != "" {
		w.host = u.Host
	}
	return w
}

// deliver posts a notice once. Errors name the host and never the URL, whose path is often a secret.
func (w *webhook) deliver(ctx context.Context, n *Notice) error {
	req, err := w.request(ctx, n)
	if err != nil {
		return err
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("post to %s: %w", w.host, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // the connection ends with the request
	return answered(w.host, resp.StatusCode)
}

// answered returns the error of a status. A receiver that answers with another 4xx has read the notice
// and refuses it; those that are tried again may come from a proxy, or from a receiver that is not set
// up yet.
func answered(host string, status int) error {
	err := fmt.Errorf("%s answered %d %s", host, status, http.StatusText(status))
	switch {
	case 200 <= status && status < 300:
		return nil
	case 300 <= status && status < 400:
		return fmt.Errorf("%w: redirects are not followed", err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusProxyAuthRequired,
		status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return err
	case 400 <= status && status < 500:
		return fmt.Errorf("%w: %w", err, errRefused)
	}
	return err
}

func (w *webhook) request(ctx context.Context, n *Notice) (*http.Request, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL of the webhook is invalid")
	}
	stamp := strconv.FormatInt(w.clock.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", w.agent)
	req.Header.Set(HeaderNotice, n.ID)
	req.Header.Set(HeaderTime, stamp)
	if w.secretFile == "" {
		return req, nil
	}
	secret, err := readSecret(w.secretFile)
	if err != nil {
		return nil, err
	}
	req.Header.Set(HeaderSignature, Sign(secret, stamp, body))
	return req, nil
}

// Sign returns the signature of a body that is sent at a time.
func Sign(secret []byte, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// readSecret reads the secret for each request, so that a changed one is used at once. White space
// around it is not part of it. A request without the signature is worse than none.
func readSecret(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("secret of the webhook: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("secret of the webhook: %w", err)
	}
	switch b = bytes.TrimSpace(b); {
	case len(b) == 0:
		return nil, fmt.Errorf("secret of the webhook: %s is empty", file)
	case len(b) > maxSecret:
		return nil, fmt.Errorf("secret of the webhook: %s is larger than %d bytes", file, maxSecret)
	}
	return b, nil
}

// client returns a client for one request. It follows no redirect: the receiver of a signed notice is
// the one that is configured.
func (w *webhook) client() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
		TLSHandshakeTimeout: w.timeout, ResponseHeaderTimeout: w.timeout}
	if w.caFile != "" {
		pem, err := os.ReadFile(w.caFile)
		if err != nil {
			return nil, fmt.Errorf("certificates for the webhook: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificates for the webhook: %s contains none", w.caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
