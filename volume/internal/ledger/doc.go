// Package ledger keeps the records of volumes and snapshots.
//
// A record is written to the store before it counts (Change); one that the store does not take is
// kept in memory until it does (PutSoon). The ledger also lends a volume to one caller at a time
// (Begin, Work), and has the names that volumes carry on drives.
package ledger
