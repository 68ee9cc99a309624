//go:build !race

package main

const slack = 1
