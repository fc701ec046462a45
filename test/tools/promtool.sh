#!/bin/sh
# Takes promtool and prometheus out of Debian's package: promtool.sh DIR. Building them takes two
# cores six minutes, and installing the package would start a server.
set -eu

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "not a Debian system: put your system's promtool and prometheus into $1" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
dir=$(realpath -m "$1")
cd "$work"
apt-get download -qq -o APT::Sandbox::User= prometheus || {
	apt-get update -qq
	apt-get download -qq -o APT::Sandbox::User= prometheus
}
dpkg-deb -x prometheus_*.deb .
mkdir -p "$dir"
mv usr/bin/promtool usr/bin/prometheus "$dir"
