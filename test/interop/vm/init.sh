#!/bin/busybox sh
# The first process of the virtual machine: load the modules, then do what serve.sh says.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /var
/bin/busybox --install -s /bin
# The programs of the machine that built this go before those of busybox. That takes their shell
# too, for busybox's prefers its own commands whatever the path says.
export PATH=/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
while read -r module; do
    insmod "/lib/modules/$module.ko"
done < /modules
sysctl -q -w net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0
ip link set lo up
. /serve.sh
