//go:build !race && long

package volume_test

// everyNth leaves nothing out: `make test-long` kills at every point.
const everyNth = 1
