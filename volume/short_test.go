//go:build !race && !long

package volume_test

// everyNth leaves out four of five kills, and of five cases of the largest tables, always the
// same: `make test` is for who waits for it. `make test-long`, which .ci/run runs, leaves none out.
const everyNth = 5
