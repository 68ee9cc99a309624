// Package policy holds pure decisions: which failing drive is released, which self-test starts now.
package policy
