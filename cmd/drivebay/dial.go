package main

import "github.com/drivebay/drivebay/internal/api"

// dial returns a client of the daemon. $DRIVEBAY_TOKEN_FILE and $DRIVEBAY_CA_FILE name what an address
// requires that other machines reach.
func (a *app) dial() *api.Client {
	return api.DialWith(a.api, api.Credentials{TokenFile: a.getenv("DRIVEBAY_TOKEN_FILE"), CAFile: a.getenv("DRIVEBAY_CA_FILE")})
}
