// Package client talks to the API server of Kubernetes about the objects of drivebay.
package client
