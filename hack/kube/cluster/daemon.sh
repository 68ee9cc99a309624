# Starts the daemon in a mount namespace of its own that propagates mounts as a container with Bidirectional
# does. There /sys/block holds no loop devices but the given ones: the kubelet and other programs have some too.
set -e
devices=$1
shift
mount --make-rprivate /sys
declare -A target
for link in /sys/block/*; do
  case ${link##*/} in loop*) [[ " $devices " == *" ${link##*/} "* ]] || continue ;; esac
  target[$link]=$(readlink "$link")
done
mount -t tmpfs -o mode=755 tmpfs /sys/block
for link in "${!target[@]}"; do
  ln -s "${target[$link]}" "$link"
done
exec "$@"
