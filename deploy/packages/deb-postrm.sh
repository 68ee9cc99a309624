#!/bin/sh
# Debian runs it after the files are removed ("remove"), and when the configuration is removed too
# ("purge"). Neither touches a drive, a volume or a mount.
set -e

state=/var/lib/drivebay

case $1 in
remove)
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
	fi
	if command -v deb-systemd-helper >/dev/null; then
		deb-systemd-helper mask drivebay.service >/dev/null || true
	fi
	;;
purge)
	if command -v deb-systemd-helper >/dev/null; then
		deb-systemd-helper purge drivebay.service >/dev/null || true
		deb-systemd-helper unmask drivebay.service >/dev/null || true
	fi
	# Only files of the daemon, by name: an administrator may have mounted something below.
	rm -f "$state"/drivebay.db*
	rmdir "$state"/luks "$state"/lvm/backup "$state"/lvm/archive "$state"/lvm "$state" /etc/drivebay 2>/dev/null || true
	if [ -d "$state" ]; then
		# Copies of LUKS headers and of LVM's metadata: damaged volumes are repaired with them.
		echo "drivebay: $state has copies of headers and metadata of volumes; remove it once no drive needs them" >&2
	fi
	;;
esac
