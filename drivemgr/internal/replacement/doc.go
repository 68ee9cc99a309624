// Package replacement leads a drive through its replacement: release, removal, return.
//
// A drive that turns bad is released automatically where the configuration allows it.
package replacement
