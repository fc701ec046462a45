#!/bin/sh
# A custom plugin of node-problem-detector: says in one line what keeps this node's pods from a network.
# It ends with 0 if nothing does, 1 if something does, 2 if that is not known. node-problem-detector cuts a
# message at 80 bytes (max_output_length), so it is no longer.
#
# CNISCOPE_DOCTOR is the command that prints the report as JSON; CNISCOPE_TIMEOUT how many seconds it may
# take, less than the rule's timeout in cniscope-monitor.json.
doctor=${CNISCOPE_DOCTOR:-cniscope doctor -o json}
LC_ALL=C
export LC_ALL

say() {
	printf '%s\n' "$1" | tr -d '\000-\011\013-\037\177-\377' | cut -c1-80
	exit "$2"
}

# Its words are separated by blanks, and it has no patterns.
set -f
# shellcheck disable=SC2086
report=$(timeout -k 1 "${CNISCOPE_TIMEOUT:-8}" $doctor 2>/dev/null)
code=$?
report=$(printf '%s' "$report" | tr '\n\t' '  ')

case $code in
124 | 137) say "cniscope doctor did not end within ${CNISCOPE_TIMEOUT:-8}s" 2 ;;
126 | 127) say "cniscope is not installed here: ${doctor%% *}" 2 ;;
esac
case $report in
*'"cniscope.dev/doctor/v1"'*) ;;
*) say "cniscope doctor says nothing that can be read, and ended with $code" 2 ;;
esac

# Of each problem the check and the summary, a line each; warnings and notes do not make a node unusable.
problems=$(printf '%s' "$report" |
	grep -oE '"check": *"[^"\\]*", *"level": *"problem", *"summary": *"([^"\\]|\\.)*"' |
	sed -E 's/^"check": *"([^"]*)".*"summary": *"(.*)"$/\1: \2/; s/\\u003c/</g; s/\\u003e/>/g; s/\\u0026/\&/g; s/\\(.)/\1/g')
if [ -n "$problems" ]; then
	more=$(($(printf '%s\n' "$problems" | wc -l) - 1))
	first=$(printf '%s\n' "$problems" | head -n 1)
	[ "$more" -gt 0 ] && first="$(printf '%s' "$first" | cut -c1-70) (+$more more)"
	say "$first" 1
fi
[ "$code" -gt 1 ] && say "cniscope doctor could not make every check, and found no problem" 2
say "cniscope doctor found no problem" 0
