# Hides from the node the loop devices of the machine, but for its drives: the machine and the kubelet have some too, and the daemon
# shows every one. The links of /sys/block are relative, and lead to the same devices from here.
set -e
devices=$1
declare -A target
for link in /sys/block/*; do
  case ${link##*/} in loop*) [[ " $devices " == *" ${link##*/} "* ]] || continue ;; esac
  target[$link]=$(readlink "$link")
done
mount -t tmpfs -o mode=755 tmpfs /sys/block
for link in "${!target[@]}"; do
  ln -s "${target[$link]}" "$link"
done
