// Package claims claims drives for volumes, and makes a new drive in a bay the successor of the
// drive that it replaces.
package claims
