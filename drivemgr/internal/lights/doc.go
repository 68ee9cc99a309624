// Package lights switches the locate and fault lights of bays and keeps them in the wanted state.
package lights
