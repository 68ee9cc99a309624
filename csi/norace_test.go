//go:build !race

package csi_test

const passesOfSanity = 100
