// Package smart decodes the pages that drives return, unchanged from the wire, into
// evidence.
//
// There is one function for each page. It changes the evidence only when the page is
// plausible: a page of the wrong length, code or checksum, or one that no working drive
// can write (all zeros, 0 K), is an error, and an error leaves the evidence unchanged. If
// one part of a page is damaged, the other parts are used and a Problem names the damage.
//
// Pages of a family are decoded in this order, because the later ones depend on the
// earlier ones:
//
//	ATA   identify (model and medium decide what an attribute means), SMART data,
//	      thresholds, then any order
//	NVMe  SMART log, then any order (limits and errors are stored with it)
//	SCSI  any order
//
// Sources: ACS-4 (T13/BSR INCITS 529), ATA8-ACS and ATA/ATAPI-5 for what ACS-4
// made obsolete, NVM Express base specification 2.0, SPC-5 and SBC-4.
package smart
