# Process 1 of the node. It makes the node's view of the machine in namespaces of its own and waits until
# its standard input ends, which it does with the process that started the node, however that ended.
# Then process 1 ends, and the kernel ends every process of its PID namespace.
set -e
run=$1
shift
mount --make-rprivate /
mount --make-rshared / # the kubelet refuses mounts that do not propagate
mount -t proc proc /proc
for dir; do
  mkdir -p "$run/node$dir"
  mount --bind "$run/node$dir" "$dir"
done
mount --make-rshared /var/lib/kubelet
ip link set lo up
ip link add node type veth peer name peer
ip addr add 10.123.0.1/24 dev node
ip addr add 10.96.0.1/32 dev lo # the Service kubernetes, without a kube-proxy
ip link set node up
ip link set peer up
ip route add default dev node
echo 1 >/proc/sys/net/ipv4/ip_forward
echo ready
# bash reaps the processes whose parents ended.
read -r _ || true
