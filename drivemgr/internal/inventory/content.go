package inventory

import "github.com/drivebay/drivebay"

// SettleContent combines the content that was read from a drive with the uses that the kernel
// reports: a drive in use by another program is never blank.
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
