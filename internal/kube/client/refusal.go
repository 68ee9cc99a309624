package client

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refuses reports whether an error says that the API server is well, and refuses this object only. A CRD that lacks a field is older
// than this daemon: server-side apply then answers with an error of the server (seen with 1.36.3).
func Refuses(err error) bool {
	return strings.Contains(err.Error(), "field not declared in schema") || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err) || apierrors.IsBadRequest(err)
}
