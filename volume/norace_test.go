//go:build !race

package volume_test

const stride = 1
