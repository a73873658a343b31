#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Programs that share a card: never over the budget together by the emulated device's own count, which all
# of them share; each says what it says alone, however the others start and end. FERRY_STARTS for more of it.
. "$(dirname "$0")/run.bash"
starts=${FERRY_STARTS:-10}
export TMPDIR=$work/folders
unset XDG_RUNTIME_DIR
mkdir "$TMPDIR"

# sharer N OPTIONS... -- PROGRAM...: in the background, as run N; its program's number in pid.N
sharer() {
  local n=$1
  shift
  rm -f "pid.$n"
  "$ferry" run -q --driver emulated --share g --report "$n.json" "$@" >"$n.out" 2>"$n.err" &
  launcher=$!
}
number() { # N: of the program, once it runs; nothing if its launcher ends before
  local i
  for ((i = 0; i < 2000; i++)); do
    [ -s "pid.$1" ] && cat "pid.$1" && return
    sleep 0.01
  done
}
gone() { # PID
  local i
  for ((i = 0; i < 6000; i++)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.01
  done
  echo "process $1 does not end"
  return 1
}
asks() { # what the one who serves says, as one line
  "$ferry" run --share g 2>/dev/null | tr -d ' \n'
}

# Habits of one weight each; the budget is less than two of them hold.
declare -A words=([accumulate]=24 [streams]=20 [perturbed]=24)
for it in "${!words[@]}"; do
  plain "$it" "$programs/habits" "$kernels" "${words[$it]}" "$it"
done

at_random() { # SEED
  local n it habit pids=() killed=() habits=() status over=0
  RANDOM=$1
  for ((n = 0; n < starts; n++)); do
    it=("${!words[@]}")
    habit=${it[RANDOM % 3]}
    sharer "$n" --budget 4MiB --least 1MiB -- bash -c "echo \$\$ >pid.$n; exec '$programs/habits' '$kernels' ${words[$habit]} $habit"
    pids[n]=$launcher habits[n]=$habit killed[n]=
    [ $((n % 2)) = 0 ] || sleep 0.0$((RANDOM % 10)) # two at once, however busy the machine is
    case $((RANDOM % 5)) in
      0) number "$n" >/dev/null; kill -KILL "$launcher" 2>/dev/null && killed[n]=launcher ;;
      1) killed[n]=program; kill -KILL "$(number "$n")" 2>/dev/null || killed[n]= ;;
    esac
  done
  for ((n = 0; n < starts; n++)); do
    status=0
    wait "${pids[n]}" 2>/dev/null || status=$?
    case ${killed[n]} in
      launcher) gone "$(cat "pid.$n")" || return 1 ;;
      program) continue ;;
      *) [ "$status" = 0 ] || { echo "run $n (${habits[n]}): status $status"; cat "$n.err"; return 1; } ;;
    esac
    cmp "${habits[n]}.plain" "$n.out" || { echo "run $n (${habits[n]}, killed: ${killed[n]}) says something else"; cat "$n.err"; return 1; }
  done
  for ((n = 0; n < starts; n++)); do
    [ -s "$n.json" ] || continue
    [ "$(figure shared_high_bytes "$n")" -le $((4 << 20)) ] || { echo "run $n saw $(figure shared_high_bytes "$n") bytes"; return 1; }
    [ "$(figure shared_high_bytes "$n")" -le "$(figure device_high_bytes "$n")" ] || over=$((over + 1))
  done
  echo "$starts starts, of these $(grep -c launcher <<<"$(printf '%s\n' "${killed[@]}")") launchers and $(grep -c program <<<"$(printf '%s\n' "${killed[@]}")") programs killed; $over beside another" >told
  [ "$over" -gt 0 ] || { echo "no two ran at once"; return 1; }
}

room_returns() { # whatever became of the others, and whatever they left, one more can have all of it
  local folder=$TMPDIR/ferry-$(id -u)-g
  mkdir -p -m 700 "$folder" && touch "$folder/step-3" "$folder/step-0.77.0" # of a launcher and a solver that were killed
  plain whole "$programs/habits" "$kernels" 12 accumulate
  same whole --share g --budget 4MiB --least 4MiB -- "$programs/habits" "$kernels" 12 accumulate && [ -z "$(find "$TMPDIR" -name 'ferry-*-g')" ]
}

waits() { # who comes later, until there is room for its least
  sharer first --budget 3MiB --least 2MiB -- bash -c "echo \$\$ >pid.first; exec '$programs/habits' '$kernels' 400 accumulate"
  local first=$launcher
  number first >/dev/null
  "$ferry" run --driver emulated --share g --budget 3MiB --least 2MiB --report second.json -- "$programs/habits" "$kernels" 24 accumulate >second.out 2>second.err &
  local second=$!
  wait $first && wait $second && cmp accumulate.plain second.out || { cat first.err second.err; return 1; }
  grep -q 'waits for 2.00 MiB of the card that it shares' second.err || { cat second.err; return 1; }
}

resized() { # both have a part of it, as a plan for both says, and each is told at a step's boundary
  local one two i packed=
  sharer one --budget 2400KiB --least 700KiB -- bash -c "echo \$\$ >pid.one; exec '$programs/habits' '$kernels' 100000 accumulate"
  one=$launcher
  number one >/dev/null
  sharer two --budget 2400KiB --least 700KiB -- bash -c "echo \$\$ >pid.two; exec '$programs/habits' '$kernels' 100000 accumulate"
  two=$launcher
  number two >/dev/null
  for ((i = 0; i < 400; i++)); do
    packed=$(asks | grep -o '"packed_bytes":[1-9][0-9]*' | wc -l)
    [ "$packed" = 2 ] && break
    sleep 0.05
  done
  [ "$packed" = 2 ] || { asks; cat one.err two.err; return 1; }
  served=$(asks | sed 's/.*"served_by":\([0-9]*\).*/\1/')
  kill -KILL "$served" # another serves, and the program of the first goes on
  for ((i = 0; i < 400; i++)); do
    [ "$(asks | sed 's/.*"served_by":\([0-9]*\).*/\1/')" = "$two" ] && break
    sleep 0.05
  done
  asks | grep -q "\"served_by\":$two" || { asks; return 1; }
  kill -KILL "$(cat pid.one)"
  gone "$(cat pid.one)" || return 1
  for ((i = 0; i < 400; i++)); do # all of it, for the one that is left
    asks | grep -q '"granted_bytes":2[34][0-9]*,' && break
    sleep 0.05
  done
  asks | grep -q '"granted_bytes":2[34][0-9]*,' || { asks; return 1; }
  kill -TERM "$two"
  wait "$two" "$one" 2>/dev/null
  [ "$(figure resizes two)" -ge 1 ] || { cat two.json; return 1; }
}

widens() { # an op that had found no room finds all of it once the other has made way
  local pids=() n status
  for n in 1 2; do
    sharer "wide$n" --budget 2MiB --least 512KiB -- "$programs/corners" "$kernels" 30 pauses
    pids[n]=$launcher
  done
  for n in 1 2; do
    status=0
    wait "${pids[n]}" || status=$?
    [ "$status" = 0 ] && [ "$(cat "wide$n.out")" = "went well" ] || { echo "run $n: status $status"; cat "wide$n.err"; return 1; }
  done
}

same_budget() { # one that names another is told so
  sharer first --budget 3MiB -- bash -c "echo \$\$ >pid.first; exec '$programs/habits' '$kernels' 100000 accumulate"
  number first >/dev/null
  run 2 run --driver emulated --share g --budget 2MiB -- true && grep -q 'those who share this card have 3.00 MiB; use the same' err
  local good=$?
  kill -TERM "$launcher"
  wait "$launcher" 2>/dev/null
  return $good
}
nobody() { run 69 run --share nobody && grep -q 'no program is in `nobody`' err && run 2 run --share '' && grep -q 'use 1 to 64 characters' err; }

claim "random starts and kills: the same bytes, never over the budget" at_random "${FERRY_SEED:-1}"
claim "the room of whoever ended or was killed is there again" room_returns
claim "who starts later waits for its least" waits
claim "both have what a plan for both says; another serves when the first is killed" resized
claim "an op that waited for room has all of it then" widens
claim "all name one budget" same_budget
claim "nobody there is one line" nobody
cat told 2>/dev/null
finish
