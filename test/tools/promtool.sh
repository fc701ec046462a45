#!/bin/sh
# Takes promtool out of Debian's package of Prometheus: promtool.sh FILE. Building it takes two
# cores three minutes, and installing the package would start a server.
set -eu

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "not a Debian system: put your system's promtool at $1" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
file=$(realpath -m "$1")
cd "$work"
apt-get download -qq -o APT::Sandbox::User= prometheus || {
	apt-get update -qq
	apt-get download -qq -o APT::Sandbox::User= prometheus
}
dpkg-deb -x prometheus_*.deb .
mkdir -p "$(dirname "$file")"
mv usr/bin/promtool "$file"
