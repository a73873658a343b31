#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a command does when the world fails it: memory, disk, streams, parents, files made to hurt.
# One clear line and the status that docs name, nothing left behind, never a crash.
. "$(dirname "$0")/rules/common.bash"
scratch

cat >t.json <<'END'
{ "format": "ferry-trace/1", "batch": 4, "tensors": [ { "bytes": 8388608, "kind": "parameter" },
    { "bytes": 16777216, "split": "batch" }, { "bytes": 16777216 } ],
  "source": { "kind": "by hand", "detail": "tiny --device titanx-pascal" },
  "ops": [ { "ns": 3000000, "reads": [0], "writes": [1], "parts": 4 }, { "ns": 3000000, "writes": [2], "workspace_bytes": 16777216 },
    { "ns": 3000000, "reads": [0, 1, 2] } ] }
END
export FERRY_DEVICE=titanx-pascal
"$ferry" solve t.json --budget 44MiB --proof -q -o p.json >/dev/null 2>&1 || [ -e p.json ] || exit 1

library=$builddir/tests/fail_nth.so
can_fail() { # the sanitizers' own allocator stands in front of any other
  [ -e "$library" ] && LD_PRELOAD=$library FAIL_NTH=0 "$ferry" version >/dev/null 2>&1
}

# Every command with its n-th allocation failing, for n in steps that grow: it says that memory is
# out, or does what it does with all of it.
out_of_memory() {
  local expected status n command
  rm -f mark
  can_fail || { echo "an allocator cannot be put in front of this build"; return 77; }
  while read -r command; do
    timeout 60 "$ferry" $command >usual 2>/dev/null </dev/null
    expected=$?
    for ((n = 1; n < 300000; n += 1 + n / ${FERRY_STEP:-1})); do
      status=0
      rm -f mark
      LD_PRELOAD=$library FAIL_NTH=$n FAIL_NTH_MARK=mark timeout 60 "$ferry" $command >out 2>err </dev/null || status=$?
      [ -e mark ] || break # it needs fewer
      if [ $status = 70 ]; then
        grep -qE 'out of memory|the device has no room' err && [ "$(grep -c '^ferry: ' err)" = 1 ] || { echo "$n: $command:"; cat err; }
      elif [ $status = 127 ] && grep -q '^cannot allocate memory for thread-local data' err; then
        : # the C library's own end, where a library that was loaded late gets its variables
      elif [ $status != $expected ]; then
        echo "$n: $command: status $status"
        head -n 3 err
      elif ! cmp -s out usual; then
        echo "$n: $command: status $status, and another output"
      fi
    done
  done <<'END'
info t.json
solve t.json --budget 44MiB --proof -o q.json
solve t.json --budget 44MiB --recompute auto -o q.json
solve t.json --budget 44MiB --policy lru -o q.json
prove t.json p.json
check t.json p.json
simulate t.json p.json
explain t.json p.json
convert t.json
rewrite t.json p.json
export t.json p.json --chrome c.json
replay t.json p.json --bytes none --steps 2
curve t.json --points 2 --limit 10
min-memory t.json --limit 10
pack t.json t.json --points 3 --limit 10
whatif t.json --limit 10
compare t.json --policies lru --jobs 1
max-batch alexnet --limit 10 --width-divisor 8 --most 4
link --driver emulated -o l.json --most 1MiB -q
demo -q
zoo vgg16 --batch 1
devices
version
man solve
completion bash
END
}

closed_output() {
  local command status
  for command in doctor devices version "info t.json" "man solve"; do
    status=0
    "$ferry" $command >&- 2>err || status=$?
    [ $status = 3 ] && grep -q 'standard output cannot be written' err || { echo "$command: $status"; cat err; }
  done
}

file_too_large() {
  mkdir -p small
  (ulimit -f 1; run 3 zoo vgg16 --batch 1 -q -o small/a.json) && grep -q 'File too large' err || { echo "status or line"; cat err; }
  [ -z "$(ls -A small)" ] || { echo "left behind:"; ls -A small; }
}

# Wherever it is killed there is the old file, the new one, or none; where the file system knows
# files without a name, no other.
killed_while_writing() {
  local i
  mkdir -p killed
  for ((i = 0; i < 20; i++)); do
    "$ferry" zoo vgg16 --batch 1 -q -o killed/a.json &
    sleep "0.0$((i % 10))"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
  done
  [ ! -e killed/a.json ] || python3 -m json.tool killed/a.json >/dev/null || echo "half a file"
  [ "$(ls -A killed | grep -vcx 'a.json')" -le 1 ] || { echo "left behind:"; ls -A killed; }
} 2>/dev/null

bombs() {
  head -c 400000000 /dev/zero | gzip -1 >bomb.gz
  run 3 info bomb.gz && grep -q 'more than 200 times as large' err || { echo "gzip:"; cat err; }
  command -v zstd >/dev/null || return 0
  head -c 400000000 /dev/zero | zstd -q >bomb.zst
  run 3 info bomb.zst && grep -q 'more than 200 times as large' err || { echo "zstd:"; cat err; }
}

# Children of a command that is killed end with it.
orphans() {
  local parent child alive i
  "$ferry" zoo gpt2-xl --batch 8 --device h200 -q -o g.json
  "$ferry" whatif g.json --device h200 --budget 60%,55% --link 20GB/s,30GB/s --jobs 2 --limit 4000000 >/dev/null 2>&1 &
  parent=$!
  for ((i = 0; i < 100; i++)); do
    child=$(cat /proc/$parent/task/$parent/children 2>/dev/null)
    [ -n "$child" ] && break
    sleep 0.05
  done
  [ -n "$child" ] || { echo "it has no children"; return; }
  kill -9 $parent
  wait $parent 2>/dev/null
  for ((i = 0; i < 40; i++)); do
    alive=
    for it in $child; do grep -q '^State:.[^Z]' /proc/$it/status 2>/dev/null && alive=$it; done
    [ -z "$alive" ] && return
    sleep 0.05
  done
  echo "child $alive lives on"
  kill -9 $child
} 2>/dev/null

# An interrupt that comes just before or just after a process is made for a part of the work is one interrupt.
amid_fork() {
  local way status
  cat >amid.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
pid_t fork (void) {
  static int count;
  pid_t (*real) (void) = (pid_t (*) (void))dlsym (RTLD_NEXT, "fork");
  int now = ++count == 2, after = getenv ("AMID_AFTER") != NULL;
  if (now && !after)
    kill (getpid (), SIGTERM);
  pid_t child = real ();
  if (now && after && child == 0)
    kill (getpid (), SIGINT), kill (getppid (), SIGTERM);
  return child;
}
END
  ${CC:-cc} -shared -fPIC -o amid.so amid.c -ldl 2>err && LD_PRELOAD=$work/amid.so "$ferry" version >/dev/null 2>&1 || return 77
  for way in AMID_BEFORE AMID_AFTER; do
    status=0
    env LD_PRELOAD="$work/amid.so" $way=1 "$ferry" whatif t.json -q --budget 44MiB,45MiB --link 10GB/s,12GB/s,14GB/s --jobs 2 --json >out 2>err || status=$?
    [ $status = 130 ] && python3 -m json.tool out >/dev/null || { echo "$way: status $status"; cat err; }
  done
}

no_memory_at_all() {
  local budget
  for budget in 0B 0%; do
    run 1 solve t.json --budget $budget --same-places && grep -q 'no plan fits in 0 B' err || { echo "$budget"; cat err; }
  done
  printf '{"format":"ferry-device/1","name":"none","memory_bytes":0,"granule_bytes":512,"host_bytes":0,"link":{"d2h_bytes_per_s":1000000,"h2d_bytes_per_s":1000000}}' >none.json
  run 1 solve t.json --device none.json --same-places && grep -q 'no plan fits in 0 B' err || { echo "no memory"; cat err; }
}

# OpenBLAS, where it was linked, tried for ever to get room for its threads.
little_room() {
  case $COMPILE_FLAGS in
    *-fsanitize*) echo "sanitizers need more addresses than this gives"; return 77 ;;
  esac
  (ulimit -v 32768 && timeout 20 "$ferry" --version >out 2>err) || { echo "--version in 32 MB:"; cat err; }
  (ulimit -v 200000 && timeout 60 "$ferry" solve t.json --budget 80% --limit 1000 -q >out 2>err) || { echo "solve in 200 MB:"; cat err; }
}

claim "a failed allocation is one line and status 70, in every command" out_of_memory
claim "a closed output is an error" closed_output
claim "a file that may not grow is an error, and leaves nothing" file_too_large
claim "a killed command leaves no half file" killed_while_writing
claim "what grows 200 times is refused early" bombs
claim "no child outlives its parent" orphans
claim "an interrupt amid the making of a process is one" amid_fork
claim "a budget of nothing is answered" no_memory_at_all
claim "commands run in little address space" little_room
finish
