#!/bin/bash
# Fuzzes one target: fuzz.sh PACKAGE TARGET TIME [FINDINGS]. It fails where a seed fails, and
# where an input is found that fails; with a folder FINDINGS such an input is put there, said,
# and fails nothing. Go's fuzzer also ends with "context deadline exceeded" when its time is
# up in the middle of an input, which is no finding.
set -uo pipefail
out=$(mktemp)
trap 'rm -f "$out"' EXIT
echo "fuzzing $2 for $3"
go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 1x 2>&1 | tee "$out" | sed -u '/^--- FAIL: /,$d'
status=$?
found=$(sed -n 's/^ *Failing input written to //p' "$out" | head -n 1)
if [ $status -ne 0 ] && [ -z "$found" ] && grep -q '^ *context deadline exceeded$' "$out"; then
	echo "its time was up in the middle of an input: nothing was found"
	exit 0
fi
sed -n '/^--- FAIL: /,$p' "$out"
if [ -n "$found" ] && [ -n "${4:-}" ]; then
	mkdir -p "$4/$1/$(dirname "$found")"
	mv "$1/$found" "$4/$1/$found"
	cp "$out" "$4/$2-$(basename "$found").log"
	echo "FOUND an input on which $2 fails: $4/$1/$found (make fuzz-found)"
	exit 0
fi
exit $status
