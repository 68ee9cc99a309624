package rpc

import "strings"

// IsSecretKey reports whether a key of the secrets of a call is legal: letters, digits,
// "-", "_" and "." (CSI specification, "Secrets Requirements").
func IsSecretKey(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	})
}
