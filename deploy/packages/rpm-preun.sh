# $1: 0 on a removal, 1 on an upgrade. The daemon unmounts nothing when it stops.
if [ "$1" -eq 0 ]; then
	systemctl --no-reload disable --now drivebay.service >/dev/null 2>&1 || :
fi
