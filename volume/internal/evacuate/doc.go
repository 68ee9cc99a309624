// Package evacuate moves volume groups off a drive that leaves, while their volumes are in use.
package evacuate
