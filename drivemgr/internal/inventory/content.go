package inventory

import "github.com/drivebay/drivebay"

// SettleContent combines what is written on the drive with what the kernel reports: a
// drive that has partitions or users is never blank.
func SettleContent(d drivebay.Drive, read drivebay.Content) drivebay.Content {
	if stranger, used := ForeignUse(d.Uses); used && read.Kind == drivebay.ContentBlank {
		return drivebay.Content{Kind: drivebay.ContentForeign, Signatures: read.Signatures, Reason: inUse + stranger.Kind}
	}
	if d.SizeIssue != "" && read.Kind == drivebay.ContentBlank { // the content may be in the hidden part
		return drivebay.Content{Kind: drivebay.ContentForeign, Reason: d.SizeIssue}
	}
	if read.Kind == drivebay.ContentUnknown && d.Content.Kind == drivebay.ContentForeign {
		return d.Content
	}
	return read
}
