"""
The log wrapper: the shell script that stands before the user's command and copies its output into the log.

1. The workload comes first: what it is given, its exit code and its signals are unchanged, and no trouble with the log
   stops, slows or ends it. Where the wrapper cannot work, the command replaces it.
2. The user's command is "$@": never parsed again.
3. The log is opened, appended to and closed for each batch, since gcsfuse shows an object on close (gke.md 6.4).
4. POSIX sh and what busybox has; the same in dash, bash and busybox (gke.md 6.5).

Who is who. The shell that Kubernetes started waits for the workload and forwards signals. The workload writes both
streams into a pipe. The copier reads the pipe, writes the container's stdout and files of a bounded size, 1, 2, 3 and
so on. The publisher appends those files to the log and removes them; it ends when the pipe's name is gone.
"""

from collections.abc import Sequence

SCRIPT = r"""
# Names begin with falcon_ where the workload could inherit them: an exported variable keeps its export.
falcon_log=${FALCON_LOG_PATH-}
[ -n "$falcon_log" ] || exec "$@"
for falcon_tool in cat dd du head mkdir mkfifo rm sleep tail tee wc; do
  command -v "$falcon_tool" >/dev/null 2>&1 || exec "$@"
done
mkdir -p "${falcon_log%/*}" 2>/dev/null
( true >>"$falcon_log" ) 2>/dev/null || exec "$@"
for falcon_dir in "${TMPDIR:-/tmp}" /tmp /tmp/tpu_logs /var/tmp /dev/shm; do
  falcon_dir=$falcon_dir/.falcon-log.$$
  if mkdir -m 700 "$falcon_dir" 2>/dev/null; then
    mkfifo "$falcon_dir/pipe" 2>/dev/null && break
    rm -rf "$falcon_dir"
  fi
  falcon_dir=
done
[ -n "$falcon_dir" ] || exec "$@"

falcon_copy() {
  exec 3<&- 6>&-   # by exec: a redirected call keeps the descriptors open behind the function's back
  trap 'kill -KILL "$reader"; exit' USR1
  file=1
  while :; do
    dd bs=65536 count=1024 <&5 | tee "$falcon_dir/$file" &
    reader=$!
    wait "$reader"
    [ -s "$falcon_dir/$file" ] || break   # the end of the pipe, or a disk that takes nothing
    file=$((file + 1))
  done
  cat <&5 &
  reader=$!
  wait "$reader"
}

falcon_publish() {   # appends what is new: from `from` in the file `first` to the end of the newest file
  newest=$first
  while [ -e "$falcon_dir/$((newest + 1))" ]; do newest=$((newest + 1)); done
  [ -e "$falcon_dir/$newest" ] || return 0
  size=$(wc -c <"$falcon_dir/$newest")
  [ "$newest" -gt "$first" ] || [ "$size" -gt "$from" ] || return 0
  if falcon_batch | cat >>"$falcon_log"; then
    while [ "$first" -lt "$newest" ]; do
      total=$((total + $(wc -c <"$falcon_dir/$first")))
      rm -f "$falcon_dir/$first"
      first=$((first + 1))
    done
    from=$((size))
    return 0
  fi
  # The log takes nothing: what waits for it must not fill the node's disk.
  while [ "$first" -lt "$newest" ] && du -sk "$falcon_dir" | { read -r kilobytes _; [ "$kilobytes" -gt 1048576 ]; }; do
    rm -f "$falcon_dir/$first"
    first=$((first + 1)) from=0
  done
  return 1
}

falcon_batch() {
  part=$first start=$from
  while [ "$part" -lt "$newest" ]; do
    tail -c "+$((start + 1))" "$falcon_dir/$part"
    part=$((part + 1)) start=0
  done
  tail -c "+$((start + 1))" "$falcon_dir/$newest" | head -c "$((size - start))"
}

falcon_publisher() {
  exec 3<&- 5<&- 6>&-
  trap 'kill -KILL "$nap"' USR1
  first=1 from=0 total=0 nap=
  while [ -e "$falcon_dir/pipe" ]; do
    period=$((5 + (total + from) / 4194304))   # each publication transfers all that is there: 21 s at 64 MiB
    [ "$period" -le 600 ] || period=600
    sleep "$period" &
    nap=$!
    [ -e "$falcon_dir/pipe" ] && wait "$nap"
    kill -KILL "$nap"
    falcon_publish
  done
  falcon_publish || falcon_publish
}

falcon_forward() {
  falcon_caught=1
  if [ -z "$falcon_pid" ]; then falcon_early=$1; return; fi
  if [ "$1" = INT ] && falcon_deaf; then set -- TERM; fi
  kill -s "$1" "$falcon_pid"
}

falcon_deaf() {   # whether the workload ignores INT: some shells start it so, and nothing can undo it there
  while read -r falcon_key falcon_mask; do
    case $falcon_key$falcon_mask in SigIgn:*[2367abefABEF]) return 0 ;; esac
  done <"/proc/$falcon_pid/status"
  return 1
}

falcon_wait() {   # for the workload; sets falcon_code
  wait "$falcon_pid"
  falcon_code=$?
  while [ -n "$falcon_caught" ]; do   # a signal may have ended the wait, or have come just after it
    falcon_caught=
    falcon_known=
    kill -0 "$falcon_pid" && falcon_known=1
    wait "$falcon_pid"
    falcon_again=$?
    if [ "$falcon_again" -ne 127 ] || [ -n "$falcon_known" ]; then falcon_code=$falcon_again; fi
  done
}

falcon_within() {   # waits for the process $2, at most $1 seconds, then sends it $3
  ( falcon_left=$1
    while [ "$falcon_left" -gt 0 ]; do sleep 1; falcon_left=$((falcon_left - 1)); done
    kill -s "$3" "$2" ) >/dev/null &
  falcon_dog=$!
  wait "$2"
  kill -KILL "$falcon_dog"
}

falcon_pid= falcon_early= falcon_caught= falcon_env=
env --default-signal=INT,QUIT true 2>/dev/null && falcon_env='env --default-signal=INT,QUIT'
# A pipe without a name: opened for both first, so that neither end waits for the other.
exec 3<&0 4<>"$falcon_dir/pipe" 5<"$falcon_dir/pipe" 6>"$falcon_dir/pipe" 4>&- 2>/dev/null
trap '' HUP INT PIPE QUIT TERM USR1 USR2   # for the helpers: a workload may signal its whole process group
falcon_copy &
falcon_copier=$!
falcon_publisher >/dev/null &
falcon_publisher=$!
trap - PIPE
for falcon_signal in HUP INT QUIT TERM USR1 USR2; do trap "falcon_forward $falcon_signal" "$falcon_signal"; done
( trap - INT QUIT; exec $falcon_env "$@" ) <&3 >&6 2>&1 3<&- 5<&- 6>&- &
falcon_pid=$!
exec 3<&- 5<&- 6>&-
[ -z "$falcon_early" ] || falcon_forward "$falcon_early"
falcon_wait
trap '' HUP INT QUIT TERM USR1 USR2
falcon_within 5 "$falcon_copier" USR1   # what the workload left running may hold the pipe
rm -f "$falcon_dir/pipe"
kill -s USR1 "$falcon_publisher"
falcon_within 300 "$falcon_publisher" KILL
rm -rf "$falcon_dir"
exit "$falcon_code"
"""


def wrap(argv: Sequence[str]) -> list[str]:
    """Return the container command that runs *argv* and copies its output to `$FALCON_LOG_PATH`."""
    return ["/bin/sh", "-c", SCRIPT, "falcon", *argv]
