package config

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
)

// DefaultPort is the port that the documentation uses. It is outside 9100 to 9999, where the exporters of
// Prometheus have their ports.
const DefaultPort = "10748"

// HTTP configures the TCP address `listen`.
type HTTP struct {
	Hosts     []string `yaml:"hosts" doc:"Names by which clients call this address, such as node-1.example.org. IP addresses, localhost, the host name and nodeID are always allowed; other names in the Host header are refused with 421 (DNS rebinding)."`
	CertFile  string   `yaml:"certFile" doc:"PEM file of the TLS certificate and its chain. It is read again when it changes. Empty: no TLS."`
	KeyFile   string   `yaml:"keyFile" doc:"PEM file of the certificate's key."`
	TokenFile string   `yaml:"tokenFile" doc:"File that holds the bearer token which every request except GET /healthz needs. It is read for each request. Empty: no token."`
	Insecure  bool     `yaml:"insecure" doc:"Serve an address that other machines reach without TLS and token: anyone who reaches it reads the inventory."`
}

// checkHTTP validates the section together with listen.
func (l *loader) checkHTTP() {
	h := l.config.HTTP
	report := func(key string, err error) {
		where, ok := l.origin[key]
		if !ok {
			where = l.origin["listen"]
		}
		l.failKey(key, where, err)
	}
	if (h.CertFile == "") != (h.KeyFile == "") {
		key := "http.certFile"
		if h.CertFile == "" {
			key = "http.keyFile"
		}
		report(key, errors.New("certFile and keyFile belong together: set both, or none"))
		return
	}
	if l.config.Listen == "" || h.Insecure || loopback(l.config.Listen) || l.bad["listen"] {
		return
	}
	var missing []string
	if h.CertFile == "" {
		missing = append(missing, "http.certFile and http.keyFile")
	}
	if h.TokenFile == "" {
		missing = append(missing, "http.tokenFile")
	}
	if len(missing) > 0 {
		report("listen", errors.New(l.config.Listen+" can be reached by other machines: set "+strings.Join(missing, ", and ")+
			"; or listen on 127.0.0.1:"+DefaultPort+"; or set http.insecure: true"))
	}
}

// loopback reports whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func checkFile(s string) error {
	if s != "" && !filepath.IsAbs(s) {
		return errors.New("want an absolute path, not " + s)
	}
	return nil
}
