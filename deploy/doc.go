// Package deploy holds no code: its tests show that what is deployed fits what
// is built.
package deploy
