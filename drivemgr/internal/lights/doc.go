// Package lights switches the locate lights of bays and keeps them as the operator asked.
package lights
