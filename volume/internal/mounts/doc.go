// Package mounts stages and publishes volumes, and knows the state of each of their mounts.
package mounts
