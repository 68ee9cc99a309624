// Package selftests starts self-tests of drives by schedule or on request, and reports their results.
package selftests
