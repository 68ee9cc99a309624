package daemon

import (
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/metrics"
	"github.com/drivebay/drivebay/internal/rpc"
)

// access returns what the TCP address requires of requests.
func (d *daemon) access() (api.Access, error) {
	c := d.config.HTTP
	a := api.Access{Hosts: append([]string{d.node(), d.machine.Describe().Name}, c.Hosts...), TokenFile: c.TokenFile}
	if c.TokenFile != "" {
		if _, err := api.ReadToken(c.TokenFile); err != nil {
			return a, err
		}
	}
	if c.CertFile == "" {
		return a, nil
	}
	var err error
	a.TLS, err = api.TLS(c.CertFile, c.KeyFile, d.log)
	return a, err
}

// scheme returns the scheme of the URLs of the TCP address.
func (d *daemon) scheme() string {
	if d.config.HTTP.CertFile != "" {
		return "https://"
	}
	return "http://"
}

func rpcMetrics(l rpc.Latency) metrics.RPC {
	out := metrics.RPC{Service: l.Service, Method: l.Method, Code: l.Code, Calls: l.Calls, Sum: l.Sum}
	for i, bound := range rpc.LatencyBounds {
		out.Buckets = append(out.Buckets, metrics.Bucket{Bound: bound, Calls: l.Within[i]})
	}
	return out
}
