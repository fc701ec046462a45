#!/bin/sh
# The first program of a machine of its own: namespaces that have Debian's tree with changes that nobody
# else sees, and then Debian's systemd. NAME names its cgroups, ROOT is the tree, DIR is for changes,
# RIG and PACKAGES appear in its /run.
set -e
for h in /sys/fs/cgroup /sys/fs/cgroup/*; do
	[ -e "$h/cgroup.procs" ] || continue
	[ -e /sys/fs/cgroup/cgroup.procs ] && [ "$h" != /sys/fs/cgroup ] && continue # one hierarchy is all
	mkdir -p "$h/$NAME"
	for f in cpuset.cpus cpuset.mems; do
		if [ -e "$h/$f" ] && [ ! -e /sys/fs/cgroup/cgroup.procs ]; then cat "$h/$f" >"$h/$NAME/$f"; fi
	done
	echo $$ >"$h/$NAME/cgroup.procs"
done
mount --make-rprivate /
mkdir -p "$DIR/upper" "$DIR/work" "$DIR/root"
mount -t overlay -o "lowerdir=$ROOT,upperdir=$DIR/upper,workdir=$DIR/work" overlay "$DIR/root"
cd "$DIR/root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for node in null:3 zero:5 full:7 random:8 urandom:9 console:3; do
	mknod -m 666 "dev/${node%:*}" c 1 "${node#*:}"
done
mknod -m 666 dev/tty c 5 0
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
mkdir run/rig run/packages run/lock
mount --bind "$RIG" run/rig
mount --bind "$PACKAGES" run/packages
ip link set lo up
exec unshare --cgroup /bin/sh -ec '
if [ -e sys/fs/cgroup/cgroup.procs ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	all=$(cd /sys/fs/cgroup && ls -d */ | tr -d /)
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
	for h in $all; do
		mkdir "sys/fs/cgroup/$h"
		case $h in
		unified) mount -t cgroup2 cgroup2 sys/fs/cgroup/unified ;;
		systemd) mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd ;;
		*) mount -t cgroup -o "$h" cgroup "sys/fs/cgroup/$h" ;;
		esac
	done
fi
pivot_root . mnt
umount -l /mnt
export container=test
exec /lib/systemd/systemd --system --show-status=0'
