// Package records keeps the records of drives and the events in the store.
//
// Writing never blocks the caller: a store that fails or hangs delays only its own writes.
package records
