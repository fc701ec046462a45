#!/bin/bash
# Compares the Go benchmarks of this tree with those of another revision: against.sh REVISION
# [ROUNDS]. Both are built first and run in turns, so that whatever else the machine does
# meets both; benchstat then says what differs and how sure that is.
set -euo pipefail
cd "$(dirname "$0")/../.."
revision=${1:?"which revision to compare with: against.sh REVISION [ROUNDS]"} rounds=${2:-10}
work=$(mktemp -d)
cleanup() {
	git worktree remove --force "$work/tree" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/tree" "$revision"

build() { # build TREE SIDE: the test programs of all packages with benchmarks
	mkdir -p "$work/$2"
	for package in $(cd "$1" && grep -rl --include=*_test.go '^func Benchmark' pkg | xargs -n1 dirname | sort -u); do
		(cd "$1" && go test -c -o "$work/$2/${package//\//_}" "./$package")
	done
}
run() { # run TREE SIDE: every benchmark once
	for program in "$work/$2"/*; do
		package=$(basename "$program") package=${package//_//}
		(cd "$1/$package" && "$program" -test.run '^$' -test.bench . -test.benchmem -test.benchtime 300ms) |
			sed "s/^pkg: .*/pkg: ${package//\//\\/}/" >>"$work/$2.txt"
	done
}
echo "==> building both sides" >&2
build "$work/tree" before
build . after
for round in $(seq "$rounds"); do
	echo "==> round $round of $rounds (${SECONDS}s)" >&2
	run "$work/tree" before
	run . after
done
go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da before="$work/before.txt" after="$work/after.txt"
