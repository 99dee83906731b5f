#!/bin/sh
# The first process of a container with systemd: make its root of the layers that are given, lowest
# last, with nothing of this machine's in it but the processor and a network namespace, and hand
# over to Debian's init. What is written goes to memory, and is gone with the container.
#
#   boot-container.sh CGROUP LAYERS INIT...
set -e
cgroup=$1 layers=$2
shift 2

# A control group of its own is all that it sees of them.
echo 0 > "$cgroup/cgroup.procs"
exec unshare --cgroup -- sh -e -c '
layers=$1
shift
mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/root /mnt/upper /mnt/work
mount -t overlay overlay -o "lowerdir=$layers,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
cd /mnt/root
mount -t proc proc proc
# Settings of the whole machine can be read; those of its own network can be set, too.
mount --bind proc/sys proc/sys
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=0755 tmpfs dev
mkdir dev/pts dev/shm dev/net
mknod -m 0666 dev/null c 1 3
mknod -m 0666 dev/zero c 1 5
mknod -m 0666 dev/full c 1 7
mknod -m 0666 dev/random c 1 8
mknod -m 0666 dev/urandom c 1 9
mknod -m 0666 dev/tty c 5 0
mknod -m 0666 dev/net/tun c 10 200
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir run/old
pivot_root . run/old
umount -l /run/old
rmdir /run/old
exec env -i container=lab PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
' sh "$layers" "$@"
