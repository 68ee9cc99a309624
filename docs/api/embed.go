// Package apidoc carries the description of the HTTP API, so that the daemon can
// serve the one that it was built with.
package apidoc

import _ "embed"

// OpenAPI is openapi.yaml. Its paths are written by hand and its schemas from the
// types; a test of package internal/api keeps both true.
//
//go:embed openapi.yaml
var OpenAPI []byte
