#!/bin/busybox sh
# The first process of the virtual machine: load the modules, then run what comes in on the second
# serial port. A request is one line, a shell script in base64; the answer is one line, its exit
# status and its output in base64. See kernelvm.py for the other end.
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

stty -F /dev/ttyS1 raw -echo
exec < /dev/ttyS1 > /dev/ttyS1
echo ready
while read -r request; do
    echo "$request" | base64 -d > /tmp/request
    /usr/bin/sh /tmp/request < /dev/null > /tmp/output 2>&1
    echo "$? $(base64 -w 0 /tmp/output)"
done
