#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each guard of a run has a fault here that it catches, and that goes through where a library for tests leaves the
# guard out. Where another guard would catch it later, that one is left out both times.
. "$(dirname "$0")/run.bash"
export FERRY_SHIM_LIBRARY=$programs/libferry-shim.so
[ -e "$FERRY_SHIM_LIBRARY" ] || { echo "$FERRY_SHIM_LIBRARY is not made; \`make programs\` makes it"; exit 1; }

digests=net,results,inputs fine=granule=8192,link=300MB/s coarse=granule=262144,link=1200MB/s
# A driver takes its time for the other thread's copy: until the first thread has made so many copies within the device
# meanwhile, or a while.
cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>
#include "tests/programs/player.h"
enum { PATIENCE = 5000, MOMENT_US = 200 };
static atomic_int pending, made;
static player_table *of (void) { return dlsym (RTLD_DEFAULT, "player"); }
static unsigned finish (void *stream) {
  unsigned (*wait) (void *);
  *(void **)&wait = dlsym (RTLD_NEXT, "cuStreamSynchronize");
  return wait (stream);
}
__attribute__ ((visibility ("default"))) unsigned cuMemcpyHtoD_v2 (unsigned long long to, const void *from, size_t bytes) {
  unsigned (*copy) (unsigned long long, const void *, size_t);
  *(void **)&copy = dlsym (RTLD_NEXT, "cuMemcpyHtoD_v2");
  if (gettid () == getpid ())
    return copy (to, from, bytes);
  pending = 1;
  __atomic_store_n (&of ()->entered, true, __ATOMIC_RELEASE);
  for (int i = 0; i < PATIENCE && made < of ()->behind; i++)
    usleep (MOMENT_US);
  unsigned r = copy (to, from, bytes);
  r = r == 0 ? finish (NULL) : r;
  pending = 0;
  return r;
}
__attribute__ ((visibility ("default"))) unsigned cuMemcpyDtoDAsync_v2 (unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
  unsigned (*copy) (unsigned long long, unsigned long long, size_t, void *);
  *(void **)&copy = dlsym (RTLD_NEXT, "cuMemcpyDtoDAsync_v2");
  unsigned r = copy (to, from, bytes, stream);
  if (pending && made + 1 == of ()->behind)
    r = finish (stream);
  made += pending;
  for (int i = 0; i < PATIENCE && pending && made == of ()->behind; i++)
    usleep (MOMENT_US);
  return r;
}
END
${CC:-cc} -I"$srcdir" -shared -fPIC -o slow.so slow.c -ldl -Wl,--no-as-needed "$FERRY_EMU" -Wl,-rpath,"$(dirname "$FERRY_EMU")" || exit 1

# The guard; others that are left out; a step (by its seed, with tensors so many times as large; b: with ops beside) or a
# budget for the program `habits`; the emulated device; steps; what the program is told. The other thread's copy falls
# into the step behind `resets`: the plan's first, with its tests, for `still`, and a later one for `alone`.
table="
trial    $digests        4    $fine            13 order=5
net      trial,results,inputs 4 $fine          13 order=5
results  inputs          4    $fine            16 habit=16 habit_step=10
inputs   results         4    $fine            16 habit=16 habit_step=10
given    trial,$digests  4x4  $coarse          13 counter=16
undone   trial,$digests  4x4  $coarse          13 counter=16 counter=20
params   $digests        4    $fine            16 value=6
settled  trial,$digests  4x4  $coarse,races=yes 13 streams=3 $(printf 'counter=%d ' 10 12 14 16 18 20 22 24 26 30 33 36 39)
fence    trial,$digests  2x4b $coarse,races=yes 13 streams=3 counter=14 counter=47
alone    none            4x4  $coarse          16 scratch=16 resets=9 behind=6
still    none            4x4  $coarse          16 scratch=16 resets=2 behind=8
others   trial,$digests  4    $fine            13 beyond=5
slabs    trial,$digests  4x4  $coarse          13 beyond=16
leaving  none            5    $fine            48 stray=8
waits    trial,$digests  4    $fine,races=yes  13 streams=3
copies   none            3    $fine,races=yes  13 stride=1
tables   none            1000KiB granule=65536 24 pointers
clean    none            1500KiB granule=65536 24 turns
strict   none            1000KiB granule=65536 24 hidden
"

# attempt OFF STEP DEVICE STEPS ARGUMENTS...: it says what it says alone, or is ended with a reason before it says anything else
attempt() {
  local off=$1 step=$2 device=$3 steps=$4 budget=$2 status=0 command emu=$FERRY_EMU
  shift 4
  command=("$programs/habits" "$kernels" "$steps" "$@")
  if [ "$step" = "${step%KiB}" ]; then
    awk -v "seed=${step%x*}" -v "size=$([ "$step" = "${step#*x}" ] || echo "${step#*x}")" -v "beside=$([ "$step" = "${step%b}" ] || echo 1)" \
      -f "$srcdir/tests/made_step.awk" >"$step.json"
    command=("$programs/player" "$programs/player_kernels.so" "$steps" "$step.json" "$@")
    [ -e "whole$step.json" ] || FERRY_UNGUARDED=,none, under "whole$step" --budget 1GiB --host 1GiB -- "${command[@]}" || return 1
    budget=$(($(figure live_high_bytes "whole$step") * 55 / 100))B
  fi
  plain fault "${command[@]}" 2>/dev/null
  case "$*" in *resets=*) emu=$work/slow.so ;; esac
  FERRY_EMU=$emu FERRY_UNGUARDED=,$off, under fault --wait --limit 20000 --host 1GiB --emulated "$device" --budget "$budget" -- "${command[@]}" || status=$?
  [ "$status" = 0 ] && cmp -s fault.plain fault.out && return
  grep -q "$([ "$1" = hidden ] && echo 'illegal address' || echo 'was launched again, and .*--remake off')" fault.err && [ "$status" != 0 ] &&
    head -c "$(stat -c %s fault.out)" fault.plain | cmp -s - fault.out
}
holds() { # GUARD OTHERS STEP...
  attempt "${@:2}" || { echo "$1: wrong though it is there"; cat fault.err; return 1; }
  ! attempt "$1,$2" "${@:3}" || echo "$1: nothing is wrong without it"
}

while read -r row; do
  [ -z "$row" ] || claim "a fault goes through without this guard alone: ${row%% *}" holds $row
done <<<"$table"
for guard in $(sed -n 's/.*GUARD (\([a-z]*\)).*/\1/p' "$srcdir"/executor/shim/*/*.c | sort -u); do
  claim "guard $guard has a row" grep -q "^$guard " <<<"$table"
done
finish
