package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
)

const maintainer = "The drivebay authors <drivebay@users.noreply.github.com>"

// copyright is in the format of https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: drivebay
Source: https://github.com/drivebay/drivebay
Comment: The program contains other software. Its licenses are in
 /usr/share/doc/drivebay/THIRD_PARTY.

Files: *
Copyright: 2026 the drivebay authors
License: Apache-2.0
 On Debian systems, the text of the license is in
 /usr/share/common-licenses/Apache-2.0.
`

func (b *build) debianChangelog() string {
	return fmt.Sprintf("drivebay (%s-1) unstable; urgency=medium\n\n  * Version %s: see changelog.gz.\n\n -- %s  %s\n",
		b.version, b.described, maintainer, b.modified.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// info returns what both packages say about themselves.
func (b *build) info(binary string) *nfpm.Info {
	return &nfpm.Info{
		Name: "drivebay", Arch: b.arch, Platform: "linux", Version: b.version, VersionSchema: "none", Release: "1",
		Section: "admin", Maintainer: maintainer, Vendor: "drivebay", Homepage: "https://github.com/drivebay/drivebay", License: "Apache-2.0",
		Description: "manager of the drives of a storage node\n" +
			"The daemon monitors the drives of a machine, determines their health from\n" +
			"the evidence of the drives and of the kernel, and reports the reasons. It\n" +
			"creates volumes on drives that an operator claims, moves them off failing\n" +
			"drives, and serves them to containers (Container Storage Interface).",
		MTime: b.modified, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: b.common(binary)},
	}
}

// common returns the files of both packages.
func (b *build) common(binary string) files.Contents {
	tree := func(name string) string { return filepath.Join(root, name) }
	list := files.Contents{
		b.file("", "/etc/drivebay", files.TypeDir, 0o755),
		b.file("", "/usr/share/drivebay", files.TypeDir, 0o755),
		b.file("", "/usr/share/doc/drivebay", files.TypeDir, 0o755),
		b.file(binary, "/usr/bin/drivebay", "", 0o755),
		b.file(tree("deploy/packages/drivebay.yaml"), "/etc/drivebay/drivebay.yaml", files.TypeConfigNoReplace, 0o640),
		b.file(b.made("unit"), "/usr/lib/systemd/system/drivebay.service", "", 0o644),
		b.file(tree("deploy/udev/61-drivebay.rules"), "/usr/lib/udev/rules.d/61-drivebay.rules", "", 0o644),
		b.file(b.made("bash"), "/usr/share/bash-completion/completions/drivebay", "", 0o644),
		b.file(b.made("fish"), "/usr/share/fish/vendor_completions.d/drivebay.fish", "", 0o644),
		b.file(tree("examples/drivebay.yaml"), "/usr/share/drivebay/drivebay.yaml", "", 0o644),
		b.file(tree("deploy/prometheus/drivebay.rules.yaml"), "/usr/share/drivebay/drivebay.rules.yaml", "", 0o644),
		b.file(tree("deploy/grafana/drivebay.json"), "/usr/share/drivebay/drivebay.json", "", 0o644),
		b.file(tree("THIRD_PARTY"), "/usr/share/doc/drivebay/THIRD_PARTY", "", 0o644),
		b.file(tree("SECURITY.md"), "/usr/share/doc/drivebay/SECURITY.md", "", 0o644),
	}
	pages, _ := filepath.Glob(b.made("man/*.1"))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err == nil {
			err = os.WriteFile(page+".gz", compress(text), 0o644)
		}
		if err == nil { // a page that is missing fails the test of the contents
			list = append(list, b.file(page+".gz", "/usr/share/man/man1/"+filepath.Base(page)+".gz", "", 0o644))
		}
	}
	return list
}

// parts adds what differs between the formats: places of files, names of packages, scripts.
func (b *build) parts(format string, o nfpm.Overridables) nfpm.Overridables {
	script := func(name string) string { return filepath.Join(root, "deploy/packages", format+"-"+name+".sh") }
	o.Contents = slices.Clone(o.Contents)
	if format == "deb" {
		o.Contents = append(o.Contents,
			b.file(b.made("zsh"), "/usr/share/zsh/vendor-completions/_drivebay", "", 0o644),
			b.file(filepath.Join(root, "deploy/packages/deb-lintian-overrides"), "/usr/share/lintian/overrides/drivebay", "", 0o644),
			b.file(b.made("copyright"), "/usr/share/doc/drivebay/copyright", "", 0o644),
			b.file(b.made("changes.gz"), "/usr/share/doc/drivebay/changelog.gz", "", 0o644),
			b.file(b.made("debian.gz"), "/usr/share/doc/drivebay/changelog.Debian.gz", "", 0o644),
		)
		o.Depends = strings.Fields("e2fsprogs mount passwd")
		o.Recommends = strings.Fields("btrfs-progs cryptsetup-bin lvm2 thin-provisioning-tools udev xfsprogs")
		o.Suggests = strings.Fields("drbd-utils ledmon nvme-cli smartmontools")
		o.Scripts = nfpm.Scripts{PostInstall: script("postinst"), PreRemove: script("prerm"), PostRemove: script("postrm")}
		o.Deb.Compression = "xz"
		return o
	}
	o.Contents = append(o.Contents,
		b.file(b.made("zsh"), "/usr/share/zsh/site-functions/_drivebay", "", 0o644),
		b.file(filepath.Join(root, "LICENSE"), "/usr/share/licenses/drivebay/LICENSE", files.TypeRPMLicense, 0o644),
	)
	o.Depends = strings.Fields("e2fsprogs util-linux shadow-utils systemd")
	o.Recommends = strings.Fields("cryptsetup device-mapper-persistent-data lvm2 xfsprogs")
	o.Suggests = strings.Fields("btrfs-progs drbd-utils ledmon nvme-cli smartmontools")
	o.Scripts = nfpm.Scripts{PostInstall: script("post"), PreRemove: script("preun"), PostRemove: script("postun")}
	o.RPM = nfpm.RPM{Summary: "Manager of the drives of a storage node", BuildHost: "localhost", Compression: "xz"}
	return o
}
