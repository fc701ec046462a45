#!/bin/sh
# Fails when CNI calls take too long, run too many commands or fail, while something starts
# pods:
#
#     sudo ./gate.sh ./start-pods.sh
#
# Needs root on the node that runs the pods, and cniscope in the PATH. Everything is drawn
# that crosses a limit; recording and page are left for the CI to keep.
set -u

RECORDING=${RECORDING:-cni.rec.gz}
CONFIG=${CONFIG:-}                # cniscope's options, if not those in /etc/cniscope
MAX_CALL=${MAX_CALL:-500ms}       # how long one call may take, as its pod waits for it
MAX_COMMAND=${MAX_COMMAND:-250ms} # how long one command in it may take
MAX_COMMANDS=${MAX_COMMANDS:-20}  # how many commands it may run

cniscope record --overwrite ${CONFIG:+--config "$CONFIG"} "$RECORDING" 2>"$RECORDING.log" &
recorder=$!
until grep -q -e 'observing CNI calls' -e '^recording' "$RECORDING.log"; do
	kill -0 "$recorder" 2>/dev/null || { cat "$RECORDING.log" >&2; exit 2; }
	sleep 0.1
done

"$@"
started=$?

kill "$recorder"
wait "$recorder" || { cat "$RECORDING.log" >&2; exit 2; }
cniscope show --html "$RECORDING" >"${RECORDING%.rec.gz}.html"
[ "$started" = 0 ] || { echo "the pods were not started: $* exited with $started" >&2; exit 2; }

# 0: all calls are within the limits; 1: a limit was crossed; 2: nothing can be said.
exec cniscope show --problems "$RECORDING" --max-failed 0 \
	--max-call "$MAX_CALL" --max-command "$MAX_COMMAND" --max-commands "$MAX_COMMANDS"
