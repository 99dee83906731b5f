#!/bin/busybox sh
# The first process of a machine with systemd: load the modules, mount Debian's root file system,
# put into it what the tests bring along, and hand over to its init.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs devtmpfs /dev
while read -r module; do
    insmod "/lib/modules/$module.ko"
done < /modules
sysctl -q -w net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0
mount -t ext4 -o noatime /dev/vda /root || exec sh
tar -x -C /root -f /brought.tar
# As udev does, which does not run here.
chmod 666 /dev/net/tun
umount /proc /dev
exec switch_root /root /sbin/init
