#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Profiles as torch 2.13 writes them: tests/today/record.py made the files, card.py puts their work on a card.
. "$(dirname "$0")/rules/common.bash"
scratch
today=$srcdir/tests/today
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
read_as() { # WAY STATUS OPS CONFIDENCE: work on a card is read, whatever else torch wrote beside it
  python3 "$today/card.py" "$today/$1.json.gz" "$1.json" && run "$2" import "$1.json" -o "$1.trace" || return 1
  grep -qE "^ops +$3 " out && grep -qE "^confidence +$4" out || { cat out; return 1; }
}
without_a_card() { # a profile of the CPU alone says what to do
  local way
  for way in plain memory shapes stacks all compiled; do
    run 1 import "$today/$way.json.gz" -o no.json && complains 'no GPU events .*ProfilerActivity.CUDA.*ferry_torch.record' && [ ! -e no.json ] || return 1
  done
  run 1 import "$today/graph.json.gz" -o no.json && complains 'no call names a tensor of a GPU'
}
planned() { # each that has sizes and times can be planned
  local way
  for way in memory all compiled; do run 0 solve "$way.trace" -d h200 -b 100% || return 1; done
}
for way in plain shapes stacks; do claim "with $way, times are read" read_as $way 1 137 "not plannable: durations only"; done
claim "with memory, sizes are too" read_as memory 0 137 "approximate: .*there are no shapes"
claim "with all of it, reads are told by shapes" read_as all 0 137 "approximate: .*by shapes"
claim "a step under torch.compile is" read_as compiled 0 127 "approximate: .*by shapes"
claim "an execution trace is" read_as graph 1 137 "not plannable: no durations"
claim "what has both can be planned" planned
claim "without a card the next step is said" without_a_card
finish
