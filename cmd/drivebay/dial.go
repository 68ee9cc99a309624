package main

import "github.com/drivebay/drivebay/internal/api"

// dial returns a client of the daemon. $DRIVEBAY_TOKEN_FILE and $DRIVEBAY_CA_FILE name what an address
// requires that other machines reach. All calls of one run share its connections.
func (a *app) dial() *api.Client {
	if a.daemon == nil {
		a.daemon = api.DialWith(a.api, api.Credentials{TokenFile: a.getenv("DRIVEBAY_TOKEN_FILE"), CAFile: a.getenv("DRIVEBAY_CA_FILE")})
	}
	return a.daemon
}

// hangUp closes the connections of a run: the daemon allows a number of them, and keeps idle ones for minutes.
func (a *app) hangUp() {
	if a.daemon != nil {
		a.daemon.Close()
		a.daemon = nil
	}
}
