#!/bin/bash
# Runs COMMAND in a PID namespace of its own, where no other rig on the machine interferes: own.sh COMMAND... The
# namespace's first process is this shell, which reaps orphans as an init does.
if [ $$ != 1 ]; then
	exec unshare --pid --fork --mount-proc --kill-child "$0" "$@"
fi
"$@"
exit $?
