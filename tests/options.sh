#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every option of every command with values that make no sense, or are far too large: one clear
# line, never a crash. The options are those that --help lists. FERRY_CASES=N tries N more command
# lines put together at random.
. "$(dirname "$0")/rules/common.bash"
scratch

cat >t.json <<'END'
{ "format": "ferry-trace/1", "batch": 4, "tensors": [ { "bytes": 8388608, "kind": "parameter" },
    { "bytes": 16777216, "split": "batch" }, { "bytes": 16777216 } ],
  "source": { "kind": "by hand", "detail": "tiny --device titanx-pascal" },
  "ops": [ { "ns": 3000000, "reads": [0], "writes": [1], "parts": 4 }, { "ns": 3000000, "writes": [2] },
    { "ns": 3000000, "reads": [0, 1, 2] } ] }
END
"$ferry" solve t.json --device titanx-pascal --limit 1000 -q -o p.json >/dev/null || exit 1
export FERRY_DEVICE=titanx-pascal

# A service that answers: without one, each line that asks for it would be tried again for three seconds.
"$ferry" serve --state state --listen "unix:$work/socket" -q >serve.out 2>&1 &
service=$!
trap 'kill $service 2>/dev/null; rm -rf "$work"' EXIT
for ((i = 0; i < 500; i++)); do
  [ -S socket ] || ! kill -0 $service 2>/dev/null && break
  sleep 0.02
done

operands() {
  case $1 in
  prove | check | simulate | export | replay | explain) echo t.json p.json ;;
  zoo) echo vgg16 --batch 1 ;;
  max-batch) echo vgg16 --width-divisor 64 --limit 10 --most 2 ;;
  pack) echo t.json t.json ;;
  plot) echo t.json p.json ;;
  import) echo chakra t.json ;;
  submit | advise | jobs) echo t.json --server "unix:$work/socket" ;;
  convert) echo t.json c.json ;;
  demo | devices | hosts | link | doctor | man | completion | version) ;;
  *) echo t.json ;;
  esac
}

commands() { "$ferry" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'; }
# name and value of each option that has one; several commands have --color, so one shows it
options() { "$ferry" "$1" --help | sed -nE 's/^  (-., |    )--([a-z-]+) ([^ ]+).*/\2 \3/p' | { [ "$1" = plot ] && cat || grep -v '^color '; }; }

# try STATUS-OR-any COMMAND OPTION VALUE
try() {
  local expected=$1 status=0
  timeout 60 "$ferry" "$2" $(operands "$2") "--$3=$4" >out 2>err </dev/null || status=$?
  if [ "$expected" = any ]; then
    [ $status -lt 71 ] || [ $status = 124 ] || { echo "$2 --$3=$4: status $status"; cat err; }
  elif [ $status != "$expected" ] || ! grep -q -- "^ferry: .*--$3: " err; then
    echo "$2 --$3=$4: status $status"
    cat err
  fi
}

# A quantity has a range: nothing is beyond 2^62 but a seed, and nothing is negative.
quantities_have_ranges() {
  local command name value it
  for command in $(commands); do
    while read -r name value; do
      case $command/$name/$value in
      */seed/*) set -- -1 9223372036854775808 ;;
      */arrive/* | */leave/*) set -- t@-1 t@4611686018427387904 t@9223372036854775808 ;;
      */array/*) set -- ;;
      */SIZE* | */N | */K | */TICKS | */RATE* | */TIME* | */SHARE | */% | */xN* | */*'|N')
        set -- -1 4611686018427387904 nan
        [ "$command" != solve ] || set -- "$@" 9223372036854775807 9223372036854775808 99999999999999999999999999 1e3 ;;
      *) set -- ;;
      esac
      for it; do try 2 "$command" "$name" "$it"; done
    done < <(options "$command")
  done
}

nothing_crashes() {
  local command name value it
  for command in $(commands); do
    [ "$command" = demo ] && continue
    while read -r name value; do
      case $value in # numbers are read by one function, which solve's try with all that is no number
      SIZE* | N | K | TICKS | RATE* | TIME* | SHARE | % | xN*) set -- '' 0 0% 1 ;;
      *) set -- '' , - / @ = 0 1 ;;
      esac
      [ "$command" != solve ] || set -- '' , - / @ = 0 0% 1 %
      for it; do
        case $name:$it in output:* | chrome:* | svg:* | html:* | timeline:* | tsv:* | all:* | order:* | dump:*) continue ;; esac
        try any "$command" "$name" "$it"
      done
    done < <(options "$command")
  done
}

# Values drawn from what options understand, several options at once.
put_together() {
  local names=() command i n line status words=(0 1 2 7 64 100% 50% 0% 1GiB 8MiB 512 1us 1s 1ppm
    auto off level depth cheap only all any x2 1/1 2/3 vgg16 titanx-pascal h200 lru g10 t@1s '' , 9007199254740992 8PiB)
  RANDOM=${FERRY_SEED:-1}
  mapfile -t all < <(commands | grep -vx demo)
  for ((i = 0; i < ${FERRY_CASES:-40}; i++)); do
    command=${all[RANDOM % ${#all[@]}]}
    mapfile -t names < <(options "$command" | cut -d' ' -f1 | grep -vxE 'output|chrome|svg|html|timeline|tsv|all|order|dump|data|times|merge')
    line=()
    for ((n = RANDOM % 4; n >= 0 && ${#names[@]} > 0; n--)); do
      line+=("--${names[RANDOM % ${#names[@]}]}=${words[RANDOM % ${#words[@]}]}")
    done
    status=0
    timeout 20 "$ferry" "$command" $(operands "$command") "${line[@]}" >out 2>err </dev/null || status=$?
    [ $status -lt 71 ] || [ $status = 124 ] || { echo "$command ${line[*]}: status $status"; cat err; }
  done
}

claim "a quantity out of its range is refused by its option's name" quantities_have_ranges
claim "no value of an option ends a command by a signal" nothing_crashes
claim "no options together end a command by a signal" put_together

kill $service 2>/dev/null
wait $service
ended=$?
in_order() { [ $ended = 0 ] || grep -q without-server serve.out || { echo "status $ended"; cat serve.out; }; }
claim "the service that was asked all of that ends in order" in_order
finish
