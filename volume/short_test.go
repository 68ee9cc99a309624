//go:build !race && !long

package volume_test

// everyNth leaves out four of five kills, and of five cases of the largest tables, always the
// same ones: `make test` has to end within two minutes. `make test-long`, which .ci/run runs,
// leaves none out.
const everyNth = 5
