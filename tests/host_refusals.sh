#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every command that takes a host refuses one that is unknown or broken, and ranks that it has no
# cards for: one line, the documented status, and no file.
. "$(dirname "$0")/rules/common.bash"
scratch
"$ferry" zoo -q alexnet --batch 4 --image 64 --width-divisor 4 --classes 10 -d h100-sxm -o net.json || exit 1
printf '{"format":"ferry-plan/1"}' >plan.json
printf 'not JSON' >text.json
: >empty.json
asks=("solve net.json -b 50% -o made" "curve net.json --tsv made" "min-memory net.json" "max-batch alexnet -b 1GiB"
  "compare net.json -b 50%" "whatif net.json -b 50%" "advise net.json" "simulate net.json plan.json --svg made" "replay net.json plan.json")

says() { # STATUS TEXT COMMAND...
  local status=$1 text=$2 got
  shift 2
  "$ferry" "$@" -q >out 2>said
  got=$?
  [ "$got" = "$status" ] && [ ! -s out ] && [ ! -e made ] && [ "$(wc -l <said)" = 1 ] && grep -qF -- "$text" said ||
    { echo "$*: status $got"; cat said; rm -f made; return 1; }
}
all_say() { # STATUS TEXT OPTION...: of every command
  local status=$1 text=$2 ask failed=0
  shift 2
  for ask in "${asks[@]}"; do
    # shellcheck disable=SC2086
    says "$status" "$text" $ask "$@" || failed=1
  done
  return $failed
}
unknown() { all_say 2 '`ferry hosts` lists them' --host nowhere && says 2 '`ferry hosts` lists them' link --all --host nowhere -o made; }
ranks() { all_say 2 'hgx-h100 has 8 cards' --host hgx-h100 --ranks 9 && all_say 2 '--ranks: 0 is not between 1 and' --host hgx-h100 --ranks 0; }
broken() {
  all_say 3 'text.json:1: not JSON' --host ./text.json && all_say 3 'empty.json: empty' --host ./empty.json &&
    says 3 'is not a host that this version reads' link --all --host ./plan.json -o made
}

claim "a host that is not known" unknown
claim "ranks without a card" ranks
claim "files that are no hosts" broken
finish
