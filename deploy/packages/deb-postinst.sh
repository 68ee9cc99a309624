#!/bin/sh
# Debian runs it after the files are unpacked: "configure" on the first installation, "configure
# OLD-VERSION" on an upgrade, and on an installation after a removal.
set -e

config=/etc/drivebay/drivebay.yaml

if [ "$1" = configure ]; then
	getent group drivebay >/dev/null || groupadd --system drivebay
fi

case $1 in configure | abort-upgrade | abort-deconfigure | abort-remove)
	action=start
	if [ -n "$2" ] && ! [ -h /etc/systemd/system/drivebay.service ]; then
		action=try-restart # not after a removal, which masks the unit. Only the process is replaced: volumes stay mounted
	fi
	deb-systemd-helper unmask drivebay.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled drivebay.service; then
		deb-systemd-helper enable drivebay.service >/dev/null || true
	else
		deb-systemd-helper update-state drivebay.service >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -e "$config" ] && ! drivebay config check "$config" >/dev/null; then
			# A daemon that runs goes on with the configuration that it has.
			echo "drivebay: correct $config, then run: systemctl restart drivebay" >&2
		else
			deb-systemd-invoke "$action" drivebay.service >/dev/null || true
		fi
	fi
	;;
esac
