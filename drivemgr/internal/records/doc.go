// Package records keeps the records of drives and the events in the store.
//
// Writing never blocks the caller: a store that fails or hangs delays only what is kept.
package records
