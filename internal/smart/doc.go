// Package smart decodes the pages that drives answer with, as they came over the
// wire, into evidence.
//
// There is one function a page. It changes the evidence only when the page can
// be believed: a page of the wrong length, code or checksum, or one that no
// working drive can write (all zeros, 0 K), is an error, and an error leaves the
// evidence as it was. A page of several parts that is damaged in one of them is
// used for the others, and the damage is named in a Problem.
//
// Pages of a family are decoded in this order, because the later ones need what
// the earlier ones say:
//
//	ATA   identify (model and medium decide what an attribute means), SMART data,
//	      thresholds, then any order
//	NVMe  SMART log, then any order (limits and errors are its company)
//	SCSI  any order
//
// Sources: ACS-4 (T13/BSR INCITS 529), ATA8-ACS and ATA/ATAPI-5 for what ACS-4
// made obsolete, NVM Express base specification 2.0, SPC-5 and SBC-4.
package smart
