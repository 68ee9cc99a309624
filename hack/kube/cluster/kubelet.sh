# Starts the kubelet in a mount namespace of its own, with every loop device: it makes some for volumes of mode Block, and looks for them.
set -e
mount --make-rprivate /sys
umount /sys/block
exec "$@"
