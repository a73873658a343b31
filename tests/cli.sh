#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The command line as people and scripts meet it: statuses, streams, one line for each mistake.
. "$(dirname "$0")/rules/common.bash"
scratch

one_line() { [ "$(wc -l <err)" = 1 ] && grep -q '^ferry: ' err && [ ! -s out ]; }
says() { grep -qF -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }

no_arguments() { run 2 && [ ! -s out ] && grep -q '^usage: ferry' err; }
help() { run 0 --help && [ ! -s err ] && grep -q '^usage: ferry' out && run 0 help info && grep -q -- --budget out; }
version() { run 0 --version && grep -qE '^ferry [0-9]+\.[0-9]+\.[0-9]+' out && run 0 version --json && python_json out; }
python_json() { ! command -v python3 >/dev/null || python3 -m json.tool "$1" >/dev/null; }
near_command() { run 2 simluate && one_line && says 'did you mean `simulate`?'; }
nameless() {
  echo '{"format":"ferry-trace/1","tensors":[],"ops":[{}],"source":{"confidence":"not plannable"}}' >nameless.json &&
    run 3 solve nameless.json -d v100 && one_line && says 'ferry: the trace is not plannable'
}
no_command() { run 2 qqqqqqq && one_line && says 'see `ferry --help`'; }
near_device() { run 2 info capital.json -d H20O && one_line && says 'did you mean `h200`?'; }
capital_device() { "$ferry" zoo alexnet --batch 4 --image 64 --classes 10 --device v100 -q -o capital.json && run 0 info capital.json -d V100; }
bare_amounts() {
  run 2 solve x -b 50 && one_line && says 'is it 50% or 50GiB?' && run 2 solve x -b 0.5 && says 'is it 50% or 0.5GiB?' &&
    run 2 solve x -b 2000000000 && says 'is it 2000000000B or' && run 2 solve x -b 1/2 && says 'or a share such as 80%'
}
empty_file() { : >nothing.json && run 3 info nothing.json && one_line && says 'nothing.json: empty, where JSON is expected'; }
near_option() { run 2 info --bugdet 1GiB x && one_line && says 'did you mean --budget?'; }
no_letter() { run 2 info -Z x && one_line && says 'no option -Z'; }
no_value() { run 2 info x --budget && one_line && says '--budget needs a value: SIZE'; }
flag_value() { run 2 info --json=yes x && one_line && says 'takes no value'; }
bad_value() { run 2 info --budget 4GX /nowhere && one_line && says '--budget: `4GX` is not a number of bytes'; }
operands() { run 2 simulate && one_line && says 'usage: ferry simulate' && run 2 check a b c && one_line; }
no_file() { run 3 info /nowhere/x.json && one_line && says '/nowhere/x.json: cannot be opened: No such file'; }
not_json() { echo '{"format": "ferry-trace/1", }' >bad && run 3 info bad && one_line && says 'bad:1: not JSON'; }
cut_short() { head -c 20 /dev/zero | gzip | head -c 15 >cut.gz && run 3 info cut.gz && one_line && says 'ends early'; }
word() { run 2 plot --color=sometimes t p && one_line && says 'auto|always|never'; }
dashes() { echo x >-x && run 3 info -- -x && says '-x:1: not JSON'; }
full() { ! "$ferry" help 2>err >/dev/full && grep -q "standard output cannot be written" err; }
devices_by_year() { # every shipped card has its year, and the newest stand first
  run 0 devices -v && ! grep -q 'not known' out && grep -E '^20[0-9]{2}$' out >years && sort -r years | cmp - years && [ "$(sort -u years | wc -l)" = "$(wc -l <years)" ] &&
    run 0 devices && grep -qx rtx5090 out
}
devices() { run 0 devices && [ ! -s err ] && run 0 devices --json && python_json out && run 0 devices -v; }
no_device() { echo '{"format":"ferry-trace/1","ops":[{}],"tensors":[]}' >t && run 2 info -d nosuchcard t && one_line && says 'there is no device'; }
environment() { FERRY_DEVICE=nosuchcard run 2 info t && one_line && says 'nosuchcard'; }
demo() { # the sums of its story hold
  run 0 demo --json && python_json out && [ ! -s err ] || return 1
  local peak budget step baseline compute stall lower_bound
  for name in peak budget floor; do
    eval "$name=$(sed -n "s/^  \"${name}_bytes\": \([0-9]*\).*/\1/p" out)"
  done
  local plan steps=()
  for plan in naive solved; do
    eval "$(grep "\"$plan\":" out | grep -oE '"(step|baseline|compute|stall|lower_bound)_ns": ?[0-9]+' |
      tr -d '" ' | sed 's/_ns:/=/')"
    steps+=("$step")
    [ "$step" = $((compute + stall)) ] && [ "$compute" = "$baseline" ] || { cat out; return 1; }
  done
  [ "$peak" -gt "$budget" ] && [ "$floor" -lt "$budget" ] && [ "${steps[0]}" -gt "${steps[1]}" ] &&
    [ "${steps[1]}" -ge "$lower_bound" ] && [ "$lower_bound" -ge "$compute" ] || { cat out; return 1; }
}
demo_story() { SECONDS=0; run 0 demo && [ $SECONDS -lt 10 ] && [ ! -s err ] && grep -q 'are missing' out && grep -qE '^The naive plan takes .*, the solved one ' out; }
demo_large() { run 0 demo -d h200 && grep -q 'It fits; nothing has to move' out; }
small_step() { "$ferry" zoo vgg16 --batch 16 --width-divisor 8 --device titanx-pascal -q -o "$work/small.json"; }
policy() { # its plan is there, passes check, and is the same again
  run 0 solve small.json --policy vdnn-all --budget 1GiB -o a.json && run 0 check small.json a.json &&
    run 0 solve small.json -p vdnn-all -b 1GiB --policy-opt sync=off -o b.json && ! cmp -s a.json b.json &&
    run 0 solve small.json -p vdnn-all -b 1GiB -o b.json && cmp a.json b.json
}
policy_bound() { # whoever made a plan, its distance to the best possible is said, and can be proved
  run 0 solve small.json --policy g10 --budget 90% --proof -o p.json && grep -q '^bound .* certified by' out && grep -q '^gap ' out &&
    run 0 prove small.json p.json && run 0 solve small.json --policy g10 --budget 90% --json && grep -q '"lower_bound_ns"' out || return 1
  "$ferry" zoo resnet18 --batch 16 --device h200 -q -o fast.json && run 0 solve fast.json --policy knapsack --budget 85% --proof -o p.json &&
    grep -q '"recompute": *\[[^]]' <(tr -d '\n ' <p.json) && grep -q 'it covers every plan' out && run 0 prove fast.json p.json
}
policy_too_small() { run 1 solve small.json --policy greedy-largest --budget 8MiB -o none.json && grep -q 'it reaches' out && [ ! -e none.json ]; }
policy_wrong() { run 2 solve small.json --policy vdnn && one_line && says 'there is no policy' && run 2 solve small.json --policy g10 --policy-opt line && says 'not key=value'; }
policy_share() { # a share of the peak is the same as its bytes, and more than the card has is refused
  local how=(solve small.json -p greedy-largest) bytes
  run 0 "${how[@]}" --budget 70% -o share.json && bytes=$(grep -oE '"budget_bytes": ?[0-9]+' share.json | grep -oE '[0-9]+') &&
    run 0 "${how[@]}" --budget "${bytes}B" -o bytes.json && cmp share.json bytes.json &&
    run 2 "${how[@]}" --budget 1000GiB && one_line && says 'leaves'
}
policy_alone() { # what the planner alone knows is not passed over
  local option
  for option in --gap=1% --limit=5 --sections=auto --recompute=auto --reserve=1% --seed=3 --same-places; do
    run 2 solve small.json -p g10 -b 70% $option && one_line && says "${option%%=*} is of our own planner" || return 1
  done
  run 2 solve small.json -b 70% --policy-opt line=90% && one_line && says '--policy-opt needs --policy'
}
policy_order() { # another order of the ops is a part of the plan
  local how=(-p swapadvisor-planner --policy-opt "evaluations=80,population=16" -b 45%)
  run 0 solve small.json "${how[@]}" -o p.json && grep -q '"order"' p.json && run 0 check small.json p.json &&
    run 0 solve small.json "${how[@]}" -o again_p.json && cmp p.json again_p.json
}
policy_list() { run 0 solve --policy list && grep -q '^capuchin' out && run 0 solve --policy list --json && python_json out; }
compares() { run 0 compare small.json --budget 100%,70% --policies lru,g10 && [ "$(grep -c '^budget' out)" = 2 ] && [ "$(grep -cE '^(lru|g10)' out)" = 4 ]; }
compares_tsv() { run 0 compare small.json -b 70% --tsv - --policies ferry,lru --limit 1000 && [ "$(awk -F'\t' 'NF == 17' out | wc -l)" = 3 ]; }
compares_json() { run 0 compare small.json -b 70% --json && python_json out; }
completes() { # WORDS... EXPECTED: what bash offers for the last of the words
  local expected=${*: -1}
  COMP_WORDS=("${@:1:$#-1}") COMP_CWORD=$(($# - 2)) COMPREPLY=()
  _ferry
  [[ " ${COMPREPLY[*]} " == *" $expected "* ]] || { echo "$*: ${COMPREPLY[*]}"; return 1; }
}
completion() {
  eval "$("$ferry" completion)" && PATH=$builddir:$PATH && touch "$work/step.json" &&
    completes ferry sim simulate && completes ferry info --bud --budget &&
    completes ferry convert -f pac packed && completes ferry info --color al always &&
    completes ferry info --device titanx-p titanx-pascal && completes ferry info ste step.json
}
no_color() { run 0 info t --color=never && ! grep -q $'\x1b' out && run 0 info t && ! grep -q $'\x1b' out; }
ascii() { LC_ALL=C run 0 info t && ! LC_ALL=C grep -q '[^ -~]' out; }

unknown_key() { # with the file that has it, as an error has
  printf '%s' '{"format": "ferry-trace/1", "tensors": [{"bytes": 5}], "ops": [{"ns": 5, "foo": 1, "reads": [0]}]}' >odd.json
  run 0 info odd.json && says 'warning: odd.json: /ops/0/foo: unknown key, ignored'
}
claim "a warning names its file" unknown_key
odd_names() { # of keys and files: no line is broken, and no terminal gets a command
  printf '%s' '{"format":"ferry-trace/1","tensors":[],"ops":[{"ns":5}],"red\u001b[31m\nferry: done":1,"source":{"confidence":"approximate: all"}}' >$'odd\nname.json'
  run 0 info $'odd\nname.json' && [ "$(wc -l <err)" = 2 ] && says 'unknown key, ignored' && says 'the trace is approximate' && ! grep -q $'\x1b' err || { cat -v err; return 1; }
}
claim "a warning and a note are a line each, whatever a file and its keys are called" odd_names
claim "a trace without a name that cannot be planned is told in a sentence" nameless
claim "without a command it says how it is used, on standard error" no_arguments
claim "help is a result, on standard output" help
claim "the version is one line, and JSON" version
claim "a mistyped command is told the nearest" near_command
claim "a command like no other gets no guess" no_command
claim "a mistyped option is told the nearest" near_option
claim "an unknown letter is named" no_letter
claim "an option without its value says what it wants" no_value
claim "a flag refuses a value" flag_value
claim "a bad value is named" bad_value
claim "too few or too many operands show the usage" operands
claim "a file that is not there is named" no_file
claim "a file that is not JSON is named with its line" not_json
claim "a truncated compressed file says so" cut_short
claim "a word that is not in the list gets the list" word
claim "-- ends the options" dashes
claim "a full disk is noticed" full
claim "devices are listed" devices
batch_unknown() { # a profile does not say it
  printf 'ferry-text/1\nop a forward 1us\n' >b.txt && "$ferry" import -q b.txt -o b.json >/dev/null && run 0 info b.json -d v100 && grep -q 'batch not known' out && run 0 info b.json -d v100 --json && ! grep -q '"batch"' out
}
claim "devices are grouped by year" devices_by_year
claim "the batch of a profile is not known" batch_unknown
claim "an unknown device is told" no_device
claim "the environment gives what the command line does not" environment
claim "the demo's figures fit together" demo
claim "the demo tells its story in under ten seconds" demo_story
claim "on a card that is large enough the demo says so" demo_large
claim "a small network is there" small_step
claim "a policy's plan passes check, and is the same again" policy
claim "a policy's plan has its bound, too" policy_bound
claim "a policy that cannot keep the budget says what it reaches, and writes nothing" policy_too_small
claim "a policy that is not there, or a bad option of one, gets one line" policy_wrong
claim "a policy's budget may be a share of the peak" policy_share
claim "a policy refuses options of the planner" policy_alone
claim "a policy's own order of the ops comes with its trace" policy_order
claim "the policies are listed" policy_list
claim "compare has a row for each policy at each budget" compares
claim "compare prints columns" compares_tsv
claim "compare prints JSON" compares_json
claim "bash completes commands, options, words, devices and files" completion
batch_of_trace() { run 2 max-batch step.json -d h200 && grep -q 'ferry_torch.max_batch' err; }
claim "max-batch of a trace names the package's call" batch_of_trace
claim "colours stay away from files" no_color
lists() { # in several goes, by either name of the option
  "$ferry" curve small.json --budget 60%,70% --limit 10 -q >one && "$ferry" curve small.json -b 60% -b 70% --limit 10 -q >two &&
    cmp one two && "$ferry" curve small.json -b60% --budget=70% --limit 10 -q | cmp one -
}
range_of_share() { run 2 min-memory small.json -s 20000% && one_line && says '--slowdown: 20000% is not between 0 % and 10000 %' && run 2 solve small.json --noise 0.5% && says 'is not between 1 % and 100 %'; }
claim "a device may be named in capitals" capital_device
claim "a device is near in its capitals, too" near_device
claim "a budget without a unit may be a share" bare_amounts
claim "an empty file is called so" empty_file
claim "the range of a share is told in its unit" range_of_share
claim "a list may be given in several goes" lists
next_steps() { # what is missing is named, and how it is made
  run 2 zoo no-such-net && one_line && says 'no network is called no-such-net' && run 0 zoo list && cp out listed && run 0 zoo --list && cmp out listed &&
    run 2 devices h100 && one_line && says 'usage: ferry devices; see' && for command in explain export check plot; do
    run 2 $command small.json && one_line && says "ferry $command needs a plan beside small.json; \`ferry solve small.json -o PLAN\` makes one" || return 1
  done
}
claim "a missing plan, network or operand is named with the next step" next_steps
claim "without UTF-8 every byte is ASCII" ascii
finish
