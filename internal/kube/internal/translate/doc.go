// Package translate converts between the volumes of the dictionary and the objects of Kubernetes.
// Its functions are pure.
package translate
