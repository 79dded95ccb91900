#!/usr/bin/env bash
# Starts a command again when something outside of it has ended it, until it is done.
#
#   examples/supervise.sh python run_pretraining.py --flagfile=... --distribution_strategy=multi_worker
#
# One on each machine of a run on several workers. Started again is what ended with 75 (SIGTERM), 143
# (SIGTERM before or after the loop of steps), 76 (another worker does not answer), or a signal that
# kills. All other statuses, such as 1 (a mistake in flags or data), are passed on. SIGTERM to this
# script, Ctrl-C and the end of its terminal end the command, and then the script.
#   MOST_STARTS (1000)  so many times at most
#   PAUSE (10)          seconds before it starts again
set -uo pipefail
(($#)) || { echo "supervise.sh: error: pass the command to run" >&2; exit 1; }
is_stopped=
child=
# A command in the background ignores Ctrl-C, so it always gets SIGTERM, on which it saves.
trap 'is_stopped=yes; [ -z "$child" ] || kill -TERM "$child"' TERM INT HUP
for ((number = 1; ; number++)); do
  "$@" &
  child=$!
  # The signal may have come before the line above.
  [ -z "$is_stopped" ] || kill -TERM "$child" 2>/dev/null
  # A signal ends a wait; the command is waited for again.
  wait "$child"
  status=$?
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
  child=
  case $status in
    75 | 76 | 132 | 134 | 135 | 136 | 137 | 139 | 143) ;;
    *) exit "$status" ;;
  esac
  [ -z "$is_stopped" ] && ((number < ${MOST_STARTS:-1000})) || exit "$status"
  echo "supervise.sh: status $status; start $((number + 1)) in ${PAUSE:-10} s" >&2
  sleep "${PAUSE:-10}"
  [ -z "$is_stopped" ] || exit "$status"
done
