// Package replacement moves a drive through its replacement: release, emptied, safe to pull,
// taken out, returned.
//
// A drive that turns bad is released automatically where the configuration allows it.
package replacement
