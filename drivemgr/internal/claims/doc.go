// Package claims decides which drives volumes may be made on, and lets a new drive in a
// bay succeed the one that it replaces.
package claims
