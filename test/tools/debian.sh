#!/bin/sh
# Lists which of the Debian packages given are missing, then installs them.
set -eu

if ! command -v dpkg-query >/dev/null; then
	echo "not a Debian system: if what follows fails, install your system's: $*" >&2
	exit 0
fi

# Make may call this for several at once; apt has one lock.
exec 9<"$0"
flock 9

missing=
for package in "$@"; do
	case $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || :) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

echo "missing Debian packages:$missing"
if [ "$(id -u)" != 0 ]; then
	echo "installing them needs root: apt-get install$missing" >&2
	exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
