#!/bin/sh
# Debian runs it after the files are unpacked: "configure OLD-VERSION" on an upgrade, "configure"
# on an installation.
set -e

config=/etc/drivebay/drivebay.yaml

if [ "$1" = configure ]; then
	getent group drivebay >/dev/null || groupadd --system drivebay
fi

case $1 in configure | abort-upgrade | abort-deconfigure | abort-remove)
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
		elif [ -n "$2" ]; then
			# Only the process is replaced: volumes stay mounted.
			deb-systemd-invoke try-restart drivebay.service >/dev/null || true
		else
			deb-systemd-invoke start drivebay.service >/dev/null || true
		fi
	fi
	;;
esac
