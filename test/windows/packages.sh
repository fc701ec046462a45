#!/bin/bash
# Runs the tests of packages as programs of Windows, under wine, each in its package's folder.
# Usage: packages.sh WINE PACKAGE...
set -euo pipefail
base=$(realpath "$1")
shift
if [ "${1:-}" != inside ]; then
	exec unshare --mount --pid --fork --mount-proc --kill-child "$0" "$base" inside "$@"
fi
shift
dir=$(mktemp -d)
trap 'umount -l "$dir/root"; rm -rf "$dir"' EXIT
mkdir "$dir"/{upper,work,root}
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
mount -t proc proc "$dir/root/proc"
mount --bind /dev "$dir/root/dev"
# go test leaves its programs there, and the tests read what lies beside them.
for shared in "${TMPDIR:-/tmp}" "$PWD"; do
	mkdir -p "$dir/root$shared"
	mount --bind "$shared" "$dir/root$shared"
done
cat >"$dir/run" <<EOF
#!/bin/sh
exec chroot $dir/root env -i --chdir="\$PWD" HOME=/root PATH=/usr/bin:/bin:/usr/lib/wine WINEDEBUG=-all \
	WINEDLLOVERRIDES=mscoree,mshtml= WINEPREFIX=/root/.wine wine "\$@"
EOF
chmod +x "$dir/run"
# The first program starts wine's services, which hold open what it writes to until no program runs.
sleep infinity | "$dir/run" cmd >/dev/null 2>&1 &
"$dir/run" cmd /c exit </dev/null >/dev/null 2>&1
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -exec "$dir/run" "$@"
