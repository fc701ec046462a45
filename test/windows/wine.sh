#!/bin/bash
# Makes a Debian in a folder in which Windows programs run: wine, and a Windows drive that was set up once. It
# takes some 4 minutes and 1.4 GB, and is kept: whoever runs programs in it lays a file system over it (run.sh).
# Usage: wine.sh FOLDER
set -euo pipefail
folder=$1
suite=trixie # bookworm's wine 8 is too old for containerd.exe

"$(dirname "$0")/../tools/debian.sh" debootstrap >&2
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9 # somebody else may be making it
[ -e "$folder/.whole" ] && exit 0
echo "making a Debian with wine, some 4 minutes the first time" >&2
# Where this machine has its own packages from.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>/dev/null |
	grep -v security | head -n 1)
rm -rf "$folder"
debootstrap --variant=minbase --include=wine64,wine,ca-certificates "$suite" "$folder" \
	"${mirror:-http://deb.debian.org/debian}" >"$folder.log"
rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/var/lib/apt/lists/*
# The first program that runs sets the drive up, and wineserver ends when that is written.
unshare --mount --pid --fork --kill-child bash -c '
	mount -t proc proc "$0/proc"
	exec chroot "$0" env -i HOME=/root PATH=/usr/bin:/bin:/usr/lib/wine WINEDEBUG=-all \
		WINEDLLOVERRIDES="mscoree,mshtml=" WINEPREFIX=/root/.wine bash -c "wine wineboot --init && wineserver --wait"
' "$folder" >>"$folder.log" 2>&1
test -s "$folder/root/.wine/system.reg"
touch "$folder/.whole"
