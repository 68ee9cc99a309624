// Package expand grows volumes, and makes room for one that cannot grow where it is.
package expand
