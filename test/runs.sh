#!/bin/bash
# Runs `make test` N times, each in a new clone of the last commit, and appends a line for each run to LOG:
# runs.sh N LOG [idle|busy] [first|own] [warm|empty]
# busy: beside four busy loops, 3,000 idle processes and a foreign plugin. own: in a PID namespace of its own.
# empty: with empty caches of compiled packages, modules and parts.
set -uo pipefail
times=${1:?usage: runs.sh N LOG [idle|busy] [first|own] [warm|empty]} log=$(realpath "${2:?no LOG}")
load=${3:-idle} namespace=${4:-first} caches=${5:-warm}
cd "$(dirname "$0")/.." || exit
commit=$(git rev-parse --short HEAD)
failed=0
for ((n = 0; n < times; n++)); do
	folder=$(mktemp -d)
	trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
	git clone --quiet . "$folder/cniscope" || exit
	run=(make -C "$folder/cniscope" test)
	[ "$load" = idle ] || {
		go build -o "$folder/noise" ./test/noise && make tools || exit
		run=("$folder/noise" "$PWD/test/tools/bin/cni/bridge" "${run[@]}")
	}
	[ "$namespace" = first ] || run=(test/own.sh "${run[@]}")
	[ "$caches" = warm ] || run=(env "GOCACHE=$folder/build" "GOMODCACHE=$folder/modules" "${run[@]}")
	start=$(date -u +%FT%TZ) average=$(cut -d' ' -f1 /proc/loadavg) began=$SECONDS result=green
	"${run[@]}" >"$log.last" 2>&1 || { result=red; failed=1; cp "$log.last" "$log.$start"; }
	echo "$start $commit $load (load $average) $namespace $caches $result $((SECONDS - began))s" | tee -a "$log"
	chmod -R u+w "$folder"
	rm -rf "$folder"
	trap - EXIT
done
exit "$failed"
