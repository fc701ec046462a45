#!/bin/bash
# Fetches one of Debian's kernels: fetch.sh SUITE ARCH FOLDER puts its image at
# FOLDER/vmlinuz, its nf_tables in FOLDER/modules. The mirror is this machine's apt's.
# apt runs with a configuration of its own, so nothing of the machine's is changed and no
# root is needed.
set -euo pipefail
suite=$1 arch=$2 folder=$(mkdir -p "$3" && cd "$3" && pwd)

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "not a Debian system: put an image of the kernel of Debian's $suite for $arch at $folder/vmlinuz" >&2
	exit 1
fi
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $release" 'Component: main' | sed -n 1p)
if [ -z "$mirror" ]; then
	echo "apt knows no mirror of Debian's $release: run apt-get update, and see that its sources name one" >&2
	exit 1
fi

work=$folder/work
rm -rf "$work"
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages,unpacked,modules}
trap 'rm -rf "$work"' EXIT
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
private=(
	-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
	-o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
	-o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
	-o Acquire::Languages=none -o APT::Sandbox::User=
)

echo "fetching the kernel of Debian's $suite for $arch, some 60 MB"
apt-get "${private[@]}" -qq update
depends() {
	apt-cache "${private[@]}" show --no-all-versions "$1" |
		sed -n 's/^Depends: //p' | tr ',' '\n' | grep -oE '\blinux-(image|binary|modules)-[0-9][^ ]*' || :
}
# The name without a version depends on the kernel; newer ones are packages of packages.
packages=$(depends "linux-image-cloud-$arch")
packages+=" $(for package in $packages; do depends "$package"; done)"
(cd "$work/packages" && apt-get "${private[@]}" -qq download $packages)
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done
# Older ones have it in /boot, newer ones beside their modules.
find "$work/unpacked" -type f -name 'vmlinuz*' -exec mv {} "$folder/vmlinuz" \;
test -s "$folder/vmlinuz"

# keep numbers a module after those it depends on, which may be built in.
keep() {
	local file name=$1
	file=$(find "$work/unpacked" -name "$name.ko*" -print -quit)
	[ "$file" ] && ! compgen -G "$work/modules/*-$name.ko" >/dev/null || return 0
	xz -dcf "$file" >"$work/$name.ko" # also if it is not compressed
	for name in $(tr '\0' '\n' <"$work/$name.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do keep "$name"; done
	mv "$work/$1.ko" "$work/modules/$(printf %02d "$(find "$work/modules" -name '*.ko' | wc -l)")-$1.ko"
}
keep nf_tables
rm -rf "$folder/modules"
mv "$work/modules" "$folder/modules"
