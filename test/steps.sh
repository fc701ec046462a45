#!/bin/bash
# Runs steps one after another: steps.sh 'TITLE: COMMAND'... A red step does not stop the others; the red ones are
# listed at the end, and the exit code is 1. 'TITLE: COMMAND &' starts a step in the background; the same step
# without ' &', later in the list, waits for it and prints its output.
set -uo pipefail
logs=$(mktemp -d)
declare -A started
red=()
finish() {
	# shellcheck disable=SC2046 # one word for each process
	kill $(jobs -p) 2>/dev/null
	rm -rf "$logs"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# run executes a step, or waits for it if it was started in the background.
run() {
	local process=${started[$1]:-} result=0
	[ -n "$process" ] || { bash -c "${1#*: }"; return; }
	wait "$process" || result=$?
	cat "$logs/$process"
	return "$result"
}

number=0
for step; do
	number=$((number + 1))
	left=("${@:number+1}")
	left=("${left[@]%%:*}")
	printf '\n##### [%d/%d] %s (after %ds; left: %s)\n' "$number" $# "${step%%:*}" "$SECONDS" "$(IFS=,; echo "${left[*]:-nothing}")"
	if [[ $step == *' &' ]]; then
		step=${step% &}
		bash -c "${step#*: }" >"$logs/next" 2>&1 &
		started[$step]=$!
		mv "$logs/next" "$logs/$!"
	else
		began=$SECONDS
		run "$step" || red+=("${step%%:*} ($((SECONDS - began))s): ${step#*: }")
	fi
done
printf '\n##### %d steps in %ds, red: %d\n' $# "$SECONDS" "${#red[@]}"
[ ${#red[@]} -eq 0 ] || { printf 'RED %s\n' "${red[@]}"; exit 1; }
