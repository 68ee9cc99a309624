#!/bin/sh
# Debian runs it before the files are removed ("remove") or replaced ("upgrade": the daemon runs on).
# The daemon unmounts nothing when it stops.
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop drivebay.service >/dev/null || true
fi
