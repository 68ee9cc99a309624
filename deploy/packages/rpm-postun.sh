# $1: 0 on a removal, 1 on an upgrade. Only the process is replaced: volumes stay mounted.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload >/dev/null 2>&1 || :
	if [ "$1" -ge 1 ]; then
		systemctl try-restart drivebay.service >/dev/null 2>&1 || :
	fi
fi
