#!/bin/bash
# Makes a fresh Debian in a folder: what debootstrap installs, systemd, and what pods need. It takes
# some minutes and 300 MB, and is kept. Usage: root.sh SUITE FOLDER
set -euo pipefail
suite=$1 folder=$2
[ -e "$folder/.whole" ] && exit 0

"$(dirname "$0")/../tools/debian.sh" debootstrap >&2
# Where this machine has its own packages from.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>/dev/null |
	grep -v security | head -n 1)
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
debootstrap --variant=minbase \
	--include=systemd,systemd-sysv,dbus,iproute2,iptables,procps,rpm,ca-certificates \
	"$suite" "$folder" "${mirror:-http://deb.debian.org/debian}" >"$folder.log"
rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/var/lib/apt/lists/*
# What changes files by itself while a test looks at them.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
	systemd-tmpfiles-clean.timer systemd-random-seed.service systemd-timesyncd.service systemd-networkd.service \
	systemd-resolved.service systemd-udevd.service getty.target systemd-logind.service; do
	ln -sf /dev/null "$folder/etc/systemd/system/$unit"
done
mkdir -p "$folder/opt/cni" "$folder/etc/cni/net.d" "$folder/etc/containerd"
touch "$folder/.whole"
