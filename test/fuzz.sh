#!/bin/bash
# Fuzzes one target: fuzz.sh PACKAGE TARGET TIME. A finding is a failing input; Go's fuzzer
# also ends with "context deadline exceeded" when its time is up in the middle of an input,
# which is none.
set -uo pipefail
out=$(mktemp)
trap 'rm -f "$out"' EXIT
echo "fuzzing $2 for $3"
go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 1x 2>&1 | tee "$out"
status=$?
if [ $status -ne 0 ] && grep -q '^ *context deadline exceeded$' "$out" && ! grep -q 'Failing input written' "$out"; then
	echo "its time was up in the middle of an input: nothing was found"
	exit 0
fi
exit $status
