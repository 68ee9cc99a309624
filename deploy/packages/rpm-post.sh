# $1: 1 on an installation, 2 on an upgrade.
getent group drivebay >/dev/null || groupadd --system drivebay
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload >/dev/null 2>&1 || :
fi
if [ "$1" -eq 1 ]; then
	systemctl --no-reload preset drivebay.service >/dev/null 2>&1 || :
fi
