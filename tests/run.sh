#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Programs under a budget say what they say without one, on demand and by a plan.
. "$(dirname "$0")/run.bash"

# Everything fits, so this tells how much a program holds.
measure() { # NAME PROGRAM...
  plain "$@" && under "$1" --budget 1GiB -- "${@:2}" && cmp "$1.plain" "$1.out" && [ "$(figure evictions "$1")" = 0 ]
}
budgets() { # NAME PROGRAM...
  local name=$1 percent whole floor
  measure "$@" || return 1
  cp "$name.json" whole.json
  whole=$(figure live_high_bytes whole) floor=$(figure floor_bytes whole)
  for percent in 90 70 50; do
    same "$name" --wait --budget $((whole * percent / 100))B -- "${@:2}" || return 1
    [ "$(figure evictions "$name")" -gt 0 ] || { echo "$percent: nothing had to leave"; return 1; }
    foreseen "$name" || { echo "at $percent %"; return 1; }
  done
  # The floor: what the largest op needs, and a chunk or so of small tensors.
  same "$name" --wait --budget $((floor + 5 * 65536))B -- "${@:2}"
}
foreseen() { # NAME [PERCENT]: planned steps take what was predicted, within 5 % either way, without a mapping call
  local seen predicted
  seen=$(figure planned_step_ns "$1") predicted=$(figure predicted_step_ns "$1")
  [ "$(figure planned_steps "$1")" -ge 7 ] && [ "$(figure planned_map_calls "$1")" = 0 ] && [ "$predicted" -gt 0 ] &&
    [ $((seen * 100)) -le $((predicted * (100 + ${2:-5}))) ] && [ $((seen * 100)) -ge $((predicted * (100 - ${2:-5}))) ] ||
    { echo "planned steps $(figure planned_steps "$1"), map calls $(figure planned_map_calls "$1"), step $seen, predicted $predicted"; return 1; }
}
modes() { # every mode of being away
  same mlp --wait --budget "$(kib 60 whole)" --strict always -- "$programs/mlp" "$kernels" 16 &&
    same mlp --wait --budget "$(kib 60 whole)" --strict sync -- "$programs/mlp" "$kernels" 16 &&
    same mlp --wait --budget "$(kib 60 whole)" --strict-steps 0 --paranoid 4 -- "$programs/mlp" "$kernels" 16 &&
    [ "$(figure strict_steps mlp)" -ge 2 ]
}
sought() { # behind a search for a better plan a step takes what it took
  same mlp --wait --budget "$(kib 60 whole)" --effort normal -- "$programs/mlp" "$kernels" 16 && foreseen mlp 1
}
fuzzed() { # whichever copy or kernel comes first, on demand and planned
  local seed link
  for seed in 1 2; do
    same mlp --wait --budget "$(kib 60 whole)" --strict-steps 1 --emulated fuzz=200us,seed=$seed -- "$programs/mlp" "$kernels" 16 || return 1
  done
  plain streams "$programs/habits" "$kernels" 16 streams || return 1
  same streams --wait --budget 1000KiB --strict-steps 1 --emulated fuzz=200us,seed=3 -- "$programs/habits" "$kernels" 16 streams
  plain workspaces "$programs/habits" "$kernels" 16 workspaces || return 1
  for link in 200MB/s 50MB/s; do # copies out are still on their way where two streams begin to write side by side
    same workspaces --wait --budget 700KiB --strict-steps 1 --emulated link=$link,fuzz=200us,seed=1 -- "$programs/habits" "$kernels" 16 workspaces || return 1
  done
}
real_clock() {
  same mlp --budget "$(kib 60 whole)" --emulated clock=real -- "$programs/mlp" "$kernels" 16
}
habit() { # NAME
  plain "$1" "$programs/habits" "$kernels" 20 "$1" && same "$1" --wait --budget 1600KiB -- "$programs/habits" "$kernels" 20 "$1" &&
    same "$1" --wait --budget 1000KiB -- "$programs/habits" "$kernels" 20 "$1" || return 1
  case $1 in churn | shapes | carried | python) ;; *) foreseen "$1" ;; esac
}
parts() { # a step of parts that are nearly alike, and a program that frees all behind its last step
  plain parts "$programs/habits" "$kernels" 60 parts && same parts --wait --budget 1000KiB -- "$programs/habits" "$kernels" 60 parts &&
    [ "$(figure planned_steps parts)" -ge 10 ] && "$ferry" profile -q --driver emulated -o leaving.json -- "$programs/habits" "$kernels" 12 leaving >/dev/null
}
weights() { # a tensor whose address is on the device keeps its place, and the rest is planned
  habit weights && [ "$(figure planned_steps weights)" -ge 10 ] && ! grep 'cannot be entered' weights.err
}
unused() { # it takes no granule of the plan
  habit unused && [ "$(figure planned_steps unused)" -ge 10 ]
}
crossing() { # HABIT, BYTES: results that the step keeps until the next are made
  habit "$1" && [ "$(figure planned_steps "$1")" -ge 13 ] && [ "$(figure entries "$1")" = 1 ] && [ "$(figure crossing_bytes "$1")" = "$2" ] ||
    { echo "$(figure planned_steps "$1") planned steps, $(figure crossing_bytes "$1") bytes cross"; return 1; }
}
lengths() { # sizes that do not come back need no more of the host, and of the address space, than what is alive
  plain lengths "$programs/habits" "$kernels" 130 lengths &&
    same lengths --budget 2500KiB --host 20MiB --emulated granule=4096 -- "$programs/habits" "$kernels" 130 lengths &&
    [ "$(figure evictions lengths)" -gt 100 ] || { echo "$(figure evictions lengths) evictions"; return 1; }
}
staying() { # where little is read by the next step it stays on the device, without a mapping call
  local it
  for it in carried python; do
    plain $it "$programs/habits" "$kernels" 20 $it && same $it --wait --budget 2600KiB -- "$programs/habits" "$kernels" 20 $it &&
      [ "$(figure evictions $it)" -gt 0 ] && foreseen $it || { echo "$it"; return 1; }
  done
}
crossing_modes() { # strict and aliased, and any order of events
  local it options=("--strict always" "--strict sync" "--strict-steps 0 --paranoid 4" "--strict-steps 1 --emulated fuzz=200us,seed=1"
    "--strict-steps 1 --emulated link=50MB/s,fuzz=200us,seed=2" "--emulated races=yes" "--emulated clock=real")
  for it in "${options[@]}"; do
    same "$1" --wait --budget 1000KiB $it -- "$programs/habits" "$kernels" 20 "$1" || { echo "$it"; return 1; }
    case $it in *clock=real*) continue ;; esac # what ops take on a busy machine decides whether there is a plan
    [ "$(figure planned_steps "$1")" -ge 13 ] || { echo "$it"; return 1; }
  done
}
profiled_crossing() { # a profile has results where they are, of both steps: the peak is what the program held
  local it held
  for it in results carried gradients python; do
    "$ferry" profile --driver emulated -o crossing.json -- "$programs/habits" "$kernels" 16 $it >/dev/null 2>profiled || { cat profiled; return 1; }
    held=$(sed -n 's/.*the program held \(.*\) at most/\1/p' profiled)
    "$ferry" info -q crossing.json | grep -q "^fullest  *$held  of tensors" && grep -q '"before\.' crossing.json ||
      { echo "$it: held $held"; "$ferry" info -q crossing.json | grep fullest; return 1; }
  done
  ! "$ferry" profile -q --driver emulated -o none.json -- "$programs/habits" "$kernels" 16 ages >/dev/null 2>profiled &&
    grep -q 'alive that neither lasts nor is replaced in the next step; free it before$' profiled && [ ! -e none.json ]
}
kept_longer() { # for two steps: it stays on demand, and is told
  plain ages "$programs/habits" "$kernels" 16 ages && same ages --wait --budget 1000KiB -- "$programs/habits" "$kernels" 16 ages &&
    grep -q 'some tensor is alive that neither lasts nor is replaced in the next step' ages.err || { cat ages.err; return 1; }
}
every_third() { # the plan in the end is of three steps
  plain accumulate "$programs/habits" "$kernels" 36 accumulate &&
    same accumulate --wait --budget 1000KiB --keep-trace third.json -- "$programs/habits" "$kernels" 36 accumulate &&
    [ "$(figure planned_steps accumulate)" -ge 6 ] && "$ferry" info -q third.json --json >third &&
    [ "$(sed -n 's/^ *"ops": \([0-9]*\).*/\1/p' third)" -gt 75 ] || { cat third; return 1; }
}
two_plans() { # one for each of two steps that take turns at random, entered again without another solve
  plain phases "$programs/habits" "$kernels" 60 phases &&
    same phases --wait --budget 1000KiB -- "$programs/habits" "$kernels" 60 phases &&
    [ "$(figure plans phases)" -le 6 ] && [ "$(figure entries phases)" -ge 10 ] && [ "$(figure planned_steps phases)" -ge 36 ] ||
    { echo "$(figure plans phases) plans, entered $(figure entries phases) times, $(figure planned_steps phases) planned steps"; return 1; }
}
named() { # the op that uses a tensor unseen, in words and in the report
  local status=0
  under hidden --strict sync --budget 1000KiB -- "$programs/habits" "$kernels" 8 hidden || status=$?
  [ "$status" != 0 ] && grep -q 'illegal address: op [0-9]* `use_remembered` used a tensor that its parameters do not name' hidden.err &&
    grep -q '"fault_op": "use_remembered"' hidden.json || { echo "status $status"; cat hidden.err; return 1; }
}
loud() { # also without a wait behind each launch
  local status=0
  under hidden --budget 1000KiB -- "$programs/habits" "$kernels" 8 hidden || status=$?
  [ "$status" != 0 ] && grep -q 'rerun with --strict=sync' hidden.err || { echo "status $status"; cat hidden.err; return 1; }
}
too_small() {
  local status=0
  under mlp --budget 256KiB -- "$programs/mlp" "$kernels" 4 || status=$?
  [ "$status" != 0 ] && grep -q 'is more than the budget' mlp.err || { echo "status $status"; cat mlp.err; return 1; }
}
below_a_granule() { # nothing is allocated beside the budget, and one line says why
  local status=0
  under mlp --budget 512KiB --emulated granule=1MiB,memory=64MiB -- "$programs/mlp" "$kernels" 4 || status=$?
  [ "$status" != 0 ] && [ "$(grep -c 'gives no memory to serve tensors from: .*; raise --budget$' mlp.err)" = 1 ] ||
    { echo "status $status"; cat mlp.err; return 1; }
}
asks() { plain asks "$programs/habits" "$kernels" 1 asks && same asks --budget 1MiB -- "$programs/habits" "$kernels" 1 asks; }
host_full() {
  local status=0
  under mlp --budget 1536KiB --host 700KiB --emulated granule=256KiB -- "$programs/mlp" "$kernels" 4 || status=$?
  [ "$status" != 0 ] && grep -q 'are pinned and .* raise --host or the budget' mlp.err && ! grep -q 'raise --budget' mlp.err || { echo "status $status"; cat mlp.err; return 1; }
}
own_plan() { # a plan that was made before is followed; one for another trace is not
  same mlp --wait --budget "$(kib 70 whole)" --keep-plan plan.json --keep-trace trace.json -- "$programs/mlp" "$kernels" 16 &&
    "$ferry" check -q trace.json plan.json >/dev/null &&
    same mlp --wait --budget "$(kib 70 whole)" --plan plan.json -- "$programs/mlp" "$kernels" 16 &&
    [ "$(figure planned_steps mlp)" -ge 10 ] &&
    same mlp --wait --budget "$(kib 50 whole)" --plan plan.json -- "$programs/mlp" "$kernels" 16 && [ "$(figure planned_steps mlp)" = 0 ] &&
    grep -q 'the plan takes .* of the device, and the budget leaves .* to it; raise --budget' mlp.err && plain lstm "$programs/lstm" "$kernels" 8 &&
    same lstm --wait --budget 3000KiB --plan plan.json -- "$programs/lstm" "$kernels" 8 && [ "$(figure planned_steps lstm)" = 0 ]
}
failed_early() { # no trace of no ops; one of a program that failed later says so
  ! "$ferry" profile --driver emulated -o early.json -- "$programs/mlp" ./none.so 10 >/dev/null 2>early && [ ! -e early.json ] &&
    grep -q 'mlp ended with status 3 before its first op$' early || { cat early; return 1; }
  cp "$kernels" here.so && "$ferry" profile --driver emulated --emulated memory=1MiB -o early.json -- "$programs/mlp" here.so 10 >/dev/null 2>early
  [ $? = 3 ] && grep -q 'ended with status 3; the trace is of what it did until then$' early && [ -s early.json ] || { cat early; return 1; }
}
profiled() { # a trace that every command can use
  "$ferry" profile -q --driver emulated -o t.json -- "$programs/mlp" "$kernels" 10 >p.out && plain p "$programs/mlp" "$kernels" 10 && cmp p.plain p.out &&
    grep -q '"confidence": *"touched"' t.json && run 0 info t.json --json && grep -q '"ops": 38' out &&
    run 0 solve t.json -d "$srcdir/data/devices/titanx-pascal.json" --same-places -q
}
some_steps() {
  "$ferry" profile --driver emulated --steps 3 -o s.json -- "$programs/mlp" "$kernels" 10 >/dev/null 2>err && grep -q 'found 3 times' err || { cat err; return 1; }
}
unread() { # who reads the trace has gone: the status says so, and nothing is left behind
  local status=0
  mkdir unread && { TMPDIR=$work/unread "$ferry" profile -q --driver emulated -o - -- bash -c 'exec >/dev/null; exec "$@"' - "$programs/mlp" "$kernels" 60 2>err || echo $? >unread.status; } | true
  [ "$(cat unread.status)" = 3 ] && [ -z "$(ls -A unread)" ] || { cat unread.status err; ls -A unread; return 1; }
}
no_device() { # an emulated device that there cannot be
  local status it
  for it in granule=0 granule=1000 link=0B/s memory=0B; do
    status=0
    "$ferry" run -q --driver emulated --emulated "$it" --budget 1MiB -- "$programs/mlp" "$kernels" 3 >/dev/null 2>err || status=$?
    [ "$status" = 2 ] && grep -q "^ferry: --emulated: .* is no value for ${it%=*}" err || { echo "$it: status $status"; cat err; return 1; }
  done
}
passed_on() { # the exit status
  local status=0
  "$ferry" run -q --driver emulated --budget 1MiB -- "$programs/mlp" "$kernels.not" >/dev/null 2>err || status=$?
  [ "$status" = 3 ] || { echo "status $status"; return 1; }
}
many_arguments() { plain many "$programs/mlp" "$kernels" 6 && same many --budget 1200KiB -- "$programs/mlp" "$kernels" 6 $(seq 500); }
ends() { # STATUS HABIT: however it ends, and whatever ferry has to leave out then
  local status=0 how
  for how in "run --budget 1MiB --chrome $2.chrome" "profile -o $2.trace"; do
    status=0
    "$ferry" ${how%% *} -q --driver emulated ${how#* } -- "$programs/habits" "$kernels" 9 "$2" >/dev/null 2>err || status=$?
    [ "$status" = "$1" ] && [ "$(grep -c ^ferry: err)" = 1 ] && grep -q 'and not by exit or from main' err && [ ! -e "$2.trace" ] ||
      { echo "$how: status $status"; cat err; return 1; }
  done
}
amid() { # STATUS HABIT OPTIONS...: exit comes while a call waits, or while another thread goes on
  local status how
  for how in "run --budget 1000KiB" "profile -o $2.trace"{,,,}; do
    status=0
    timeout 60 "$ferry" ${how%% *} -q --driver emulated "${@:3}" ${how#* } -- "$programs/habits" "$kernels" 9 "$2" >/dev/null 2>err || status=$?
    [ "$status" = "$1" ] || { echo "$how: status $status"; cat err; return 1; }
  done
}
images() {
  plain images "$programs/images" "$kernels" 16 && same images --wait --budget 1600KiB -- "$programs/images" "$kernels" 16 &&
    [ "$(figure planned_steps images)" -ge 8 ] && plain few "$programs/images" "$kernels" 5 &&
    same few --budget 1600KiB --strict-steps 1 --emulated races=yes -- "$programs/images" "$kernels" 5 && [ "$(figure evictions few)" -gt 0 ]
}
side_by_side() { # what one stream waited for, and others are behind it by events, they do not wait for again
  local percent
  measure branches "$programs/habits" "$kernels" 20 branches && cp branches.json whole.json || return 1
  for percent in 80 65 50; do
    same branches --wait --budget "$(kib $percent whole)" -- "$programs/habits" "$kernels" 20 branches && foreseen branches || { echo "$percent"; return 1; }
  done
  same branches --wait --budget "$(kib 50 whole)" --strict-steps 1 --emulated races=yes,fuzz=200us,seed=1,link=500MB/s -- "$programs/habits" "$kernels" 20 branches &&
    same branches --budget "$(kib 50 whole)" --emulated clock=real -- "$programs/habits" "$kernels" 20 branches
}
answers() { # to questions about memory, and to what cannot be done
  local it
  plain questions "$programs/questions" "$kernels" 16 || return 1
  for it in 4MiB 1500KiB; do same questions --wait --budget $it -- "$programs/questions" "$kernels" 16 || return 1; done
  [ "$(figure evictions questions)" -gt 0 ] && [ "$(grep -c . questions.err)" = 0 ] || { cat questions.err; return 1; }
}
several_threads() { # what orders them is a lock of ferry's, and streams end amid it
  plain threads "$programs/habits" "$kernels" 16 threads &&
    same threads --budget 1800KiB --emulated races=yes -- "$programs/habits" "$kernels" 16 threads &&
    [ "$(figure evictions threads)" -gt 0 ]
}
# A driver takes the bytes of a copy to pageable memory piece by piece, so that a call of another thread may
# last for steps; here it begins late.
slow_copies() {
  cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
__attribute__ ((visibility ("default"))) unsigned cuMemcpyDtoH_v2 (void *to, unsigned long long from, size_t bytes) {
  unsigned (*copy) (void *, unsigned long long, size_t);
  *(void **)&copy = dlsym (RTLD_NEXT, "cuMemcpyDtoH_v2");
  if (gettid () != getpid ())
    usleep (20000);
  return copy (to, from, bytes);
}
END
  ${CC:-cc} -shared -fPIC -o slow.so slow.c -ldl -Wl,--no-as-needed "$FERRY_EMU" -Wl,-rpath,"$(dirname "$FERRY_EMU")" || return 77
  plain snapshots "$programs/habits" "$kernels" 60 snapshots &&
    FERRY_EMU=$work/slow.so same snapshots --wait --budget 1000KiB -- "$programs/habits" "$kernels" 60 snapshots &&
    [ "$(figure planned_steps snapshots)" -ge 4 ] || { echo "$(figure planned_steps snapshots) planned steps"; return 1; }
}
ends_context() { # HOW: what it did is planned and told all the same
  plain context "$programs/mlp" "$kernels" 20 && same context --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 20 "$1" &&
    [ "$(figure planned_steps context)" -ge 10 ] && "$ferry" profile -q --driver emulated -o context.json -- "$programs/mlp" "$kernels" 12 "$1" >/dev/null &&
    "$ferry" profile -q --driver emulated -o whole.json -- "$programs/mlp" "$kernels" 12 >/dev/null &&
    "$ferry" info -q --json context.json | grep -E '"(ops|tensors|tensor_bytes|peak_bytes)"' >context &&
    "$ferry" info -q --json whole.json | grep -E '"(ops|tensors|tensor_bytes|peak_bytes)"' >whole && cmp context whole && [ -s whole ]
}
after_context() { # in another context there is no memory beside the budget, and one line says so
  "$ferry" run -q --driver emulated --budget 1MiB -- "$programs/mlp" "$kernels" 5 again >out 2>err &&
    [ "$(grep -c '^again: 2$' out)" = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'ended its context and goes on' err || { cat out err; return 1; }
}
without_ops() { # it calls the driver, and ends before its first op
  local status=0
  "$ferry" run -q --driver emulated --budget 1MiB --chrome none.chrome -- "$programs/mlp" "$kernels.not" >/dev/null 2>err || status=$?
  [ "$status" = 3 ] && [ -s none.chrome ] || { echo "status $status"; cat err; return 1; }
}
no_folder() { # for what the program and ferry share
  local status=0 how
  for how in "run --budget 1MiB" "profile -o x.trace"; do
    status=0
    TMPDIR=$work/nonexist "$ferry" $how -q --driver emulated -- "$programs/mlp" "$kernels" 3 >/dev/null 2>err || status=$?
    [ "$status" = 3 ] && [ "$(wc -l <err)" = 1 ] && grep -q nonexist err || { echo "$how: status $status"; cat err; return 1; }
  done
}
raced() { # what the emulated device sees of a program, and nothing where there is an order
  local status=0
  "$ferry" run --driver emulated --emulated races=yes --budget 4MiB -- "$programs/habits" "$kernels" 6 races >/dev/null 2>err || status=$?
  [ "$status" = 1 ] && grep -q '^ferry: [0-9]* races in .*habits, the first: ' err || { echo "status $status"; cat err; return 1; }
  plain streams "$programs/habits" "$kernels" 16 streams &&
    same streams --wait --budget 1000KiB --emulated races=yes -- "$programs/habits" "$kernels" 16 streams
}
signalled() { # a signal that ends a program ends it
  local status=0
  "$ferry" run -q --driver emulated --budget 1200KiB -- "$programs/mlp" "$kernels" 100000 >/dev/null 2>err &
  sleep 1
  kill -TERM $!
  wait $! || status=$?
  [ "$status" = 143 ] || { echo "status $status"; return 1; }
}
key_of_a_terminal() { # it has reached the program before the launcher, and comes once
  command -v python3 >/dev/null || { echo "no python3"; return 77; }
  python3 - "$ferry" run --driver emulated --budget 4MiB -- "$programs/habits" "$kernels" 25 counts <<'END'
import os, pty, sys
child, terminal = pty.fork ()
if child == 0:
    os.execv (sys.argv[1], sys.argv[1:])
said = b""
try:
    while b"came" not in said:
        more = os.read (terminal, 4096)
        if b"ready" in more:
            os.write (terminal, b"\x03")
        said += more
        if not more:
            break
except OSError:
    pass
os.waitpid (child, 0)
assert b"came 25\r" in said, said
END
}
clean() { # nothing is left behind
  mkdir private && TMPDIR=$work/private same mlp --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 16 && [ -z "$(ls -A private)" ]
}

session() { # what docs/run.md shows is what ferry says
  { "$ferry" profile --driver emulated -o s.json -- "$programs/mlp" "$kernels" 10
    "$ferry" run --driver emulated --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 16; } 2>&1 >/dev/null |
    diff <(sed -n 's/^    \(ferry: .*\)/\1/p' "$srcdir/docs/run.md") -
}

reported() { # the report is what its schema says, and nothing else
  command -v python3 >/dev/null && python3 -c 'import jsonschema' 2>/dev/null || { echo "no python3-jsonschema"; return 77; }
  plain churned "$programs/habits" "$kernels" 200 perturbed 3 &&
    same churned --wait --budget 900KiB -- "$programs/habits" "$kernels" 200 perturbed 3 &&
    python3 -c 'import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' \
      churned.json "$srcdir/data/schema/run-report.schema.json" &&
    [ "$(figure clean_bytes churned)" -gt 0 ] || { echo "no tensor left without a copy"; return 1; }
}
drawn() { # FILE SEEN PREDICTED: a page with the step as it was seen, the plan's lanes and memory, and both times
  local id
  for id in seen lanes memory host; do grep -q "id=\"$id\"" "$1" || { echo "no figure $id"; return 1; }; done
  grep -q "step, seen\" value=\"$2\"" "$1" && grep -q "step, predicted\" value=\"$3\"" "$1" && grep -q '>copies out<' "$1" && grep -q matmul "$1" || { echo "$1: seen $2, predicted $3"; return 1; }
}
pictured() { # the last planned step: all its ops, copies both ways, and its ops take the time that a step took
  command -v python3 >/dev/null || { echo "no python3"; return 77; }
  plain mlp "$programs/mlp" "$kernels" 16 && same mlp --wait --budget 1200KiB --chrome last.json --html last.html -- "$programs/mlp" "$kernels" 16 &&
    drawn last.html "$(figure planned_step_ns mlp)" "$(figure predicted_step_ns mlp)" &&
    python3 - last.json "$(figure planned_step_ns mlp)" <<'END'
import json, sys
rows = [r for r in json.load(open(sys.argv[1]))["traceEvents"] if r["ph"] == "X"]
ops = [r for r in rows if r["tid"] > 1]
assert len(ops) == 38 and {r["tid"] for r in rows} >= {0, 1}, rows
assert all(r["args"]["bytes"] > 0 for r in rows if r["tid"] < 2)
took = max(r["ts"] + r["dur"] for r in ops) - min(r["ts"] for r in ops)
assert abs(took * 1000 - int(sys.argv[2])) <= 0.02 * int(sys.argv[2]), (took, sys.argv[2])
END
}
unserved() { # a server that is away keeps nobody from a plan
  plain mlp "$programs/mlp" "$kernels" 16 && same mlp --wait --budget 1200KiB --server unix:nowhere -- "$programs/mlp" "$kernels" 16 &&
    [ "$(figure served_plans mlp)" = 0 ] && [ "$(figure planned_steps mlp)" -ge 10 ] &&
    { "$ferry" run --budget 1200KiB --plan none --server unix:nowhere -- true 2>both; [ $? = 2 ]; } && grep -q 'give one of them' both &&
    no_server
}
no_server() { # what could be none is told before the program runs
  local it
  "$ferry" serve --help >/dev/null 2>&1 || return 0
  for it in nowhere http:// http://here:99999 unix: ftp://here; do
    run 2 run --driver emulated --budget 1200KiB --server "$it" -- "$programs/mlp" "$kernels" 3 && [ ! -s out ] &&
      grep -qF -e "--server: \`$it\` is not http://HOST:PORT or unix:PATH" err || { echo "$it"; cat out err; return 1; }
  done
}
served() { # the plan that is made here comes from a server, and from one job of it in two runs
  "$ferry" serve --help >/dev/null 2>&1 || return 77
  "$ferry" serve --state state --listen unix:served >serve.out 2>serve.err & # by itself: a list would be a shell's
  local server=$! i good=0
  for ((i = 0; i < 200; i++)); do [ -S served ] && break; kill -0 "$server" 2>/dev/null || return 77; sleep 0.05; done
  under own --wait --budget 1200KiB --keep-plan own.plan -- "$programs/mlp" "$kernels" 16 &&
    same mlp --wait --budget 1200KiB --server unix:served -- "$programs/mlp" "$kernels" 16 &&
    same mlp --wait --budget 1200KiB --server unix:served --keep-plan mlp.plan -- "$programs/mlp" "$kernels" 16 &&
    [ "$(figure served_plans mlp)" = 1 ] && [ "$(figure planned_steps mlp)" -ge 10 ] && foreseen mlp &&
    diff <(decided own.plan) <(decided mlp.plan) &&
    [ "$("$ferry" jobs --server unix:served | grep -c '/v1/schedules/')" = 1 ] &&
    "$ferry" run --driver emulated --wait --budget 740KiB --server unix:served -- "$programs/mlp" "$kernels" 16 2>&1 >mlp.out |
    grep -q 'no plan from unix:served: no plan was found in' || { good=1; cat mlp.err serve.err; "$ferry" jobs --server unix:served; }
  kill "$server"
  wait "$server"
  return $good
}
decided() { # PLAN: all of it but how it was asked for, and the host's memory, of which a server is asked for a round part
  grep -v '"made_by"\|"host_bytes"' "$1"
}
claim "the last planned step is a picture" pictured
claim "without its server a plan is made here" unserved
claim "a plan of a server is followed" served
claim "a report is as its schema says; what nobody touched leaves without a copy" reported
claim "the session in docs/run.md is what is said today" session
claim "an MLP says the same at 90, 70, 50 % and at its floor, as fast as predicted" budgets mlp "$programs/mlp" "$kernels" 16
claim "strict, aliased and paranoid modes say the same" modes
claim "so does every order of events" fuzzed
claim "a search for a better plan leaves the step as fast as predicted" sought
claim "so does a device of real threads" real_clock
claim "a plan that was kept can be followed" own_plan
claim "signals and folders: nothing is left behind" clean
claim "an LSTM says the same at 90, 70, 50 % and at its floor, as fast as predicted" budgets lstm "$programs/lstm" "$kernels" 11
claim "a convolution net says the same at 90, 70, 50 % and at its floor, as fast as predicted" budgets conv "$programs/conv" "$kernels" 12
for it in streams churn pointers unified unaligned shapes accumulate workers wide waiting; do
  claim "a program of the habit \`$it\` says the same" habit $it
done
claim "a program whose sizes change goes on" lengths
claim "a step is found among others like it, and at a program's end" parts
claim "a step with addresses of what lasts is planned" weights
claim "so is one that makes a tensor and does not use it" unused
claim "results that are kept until the next are made are planned" crossing results 262144
claim "so are those that are freed before the next are made" crossing gradients 131072
claim "so is one that the next step reads" crossing carried 131072
claim "so is a loop of Python's, which keeps several" crossing python 262144
claim "and it stays on the device where it is small" staying
for it in results carried python; do
  claim "every mode and order of \`$it\` says the same" crossing_modes $it
done
claim "a profile of such a step has the results of both, and the peak that was" profiled_crossing
claim "a result that is kept for longer is told" kept_longer
claim "a step that repeats every third time is planned as one" every_third
claim "several plans are kept, each entered again when its step comes back" two_plans
claim "an unseen use is named" named
claim "an unseen use is loud" loud
op_too_large() { # one op's tensors do not fit at once
  local status=0
  under accumulate --budget 384KiB -- "$programs/habits" "$kernels" 4 accumulate || status=$?
  [ "$status" != 0 ] && grep -q 'op [0-9]* `[a-z_]*` needs [0-9]* bytes resident at once, the budget is 393216 bytes' accumulate.err || { echo "status $status"; cat accumulate.err; return 1; }
}
claim "a tensor that cannot be had is told" too_small
claim "a budget below a granule is kept" below_a_granule
claim "small tensors are in the memory that the program is told of" asks
claim "too small a budget is told with the op" op_too_large
claim "too little of the host is told" host_full
claim "a profile is a trace that the other commands use" profiled
claim "a profile reads as many steps as it is told" some_steps
claim "the exit status is passed on" passed_on
claim "a reader that goes away leaves nothing behind" unread
claim "a device that there cannot be is told" no_device
claim "a program may have any number of arguments" many_arguments
claim "so is that of a program that ends by _exit" ends 5 leaves
claim "and that of one that a signal ends" ends 134 aborts
claim "and that of one that a signal's handler ends amid a call" amid 6 handled
claim "and that of one whose other threads go on" amid 7 busy --emulated clock=real
for it in reset release destroy; do claim "a program may end its context at its end: $it" ends_context $it; done
claim "streams that are side by side stay so" side_by_side
claim "the driver's answers are those that it gives alone" answers
claim "threads with streams of their own are in order" several_threads
claim "a copy that another thread waits for keeps its tensor where it is" slow_copies
claim "and what it does in another one is told" after_context
claim "copies and fills in two and three dimensions are ops like others" images
claim "a program without ops has an empty picture" without_ops
claim "a program that fails before its step, or within it, is told from one that ends" failed_early
claim "no folder for what is shared is one line" no_folder
claim "races are told, and a program without has none" raced
claim "signals are passed on" signalled
claim "a terminal's interrupt comes once" key_of_a_terminal
finish
