#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every --json output fits its schema in data/schema/answer-COMMAND.schema.json, and every command that
# has --json has one.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
python3 -c 'import jsonschema' 2>/dev/null || { echo "python3-jsonschema is not here"; exit 77; }
schemas=$srcdir/data/schema

"$ferry" zoo -q resnet18 --batch 16 --image 96 --depth-divisor 2 -d v100 -o net.json && "$ferry" zoo -q alexnet --batch 32 --image 64 --width-divisor 2 -d v100 -o alex.json &&
  "$ferry" solve -q net.json -b 60% --proof --limit 20000 -o plan.json >/dev/null && "$ferry" solve -q alex.json -b 70% --recompute auto --sections auto -o both.json --limit 20000 >/dev/null || exit 1
sed 's/"granule_bytes": *[0-9]*/"granule_bytes": 65536/' "$srcdir/data/devices/titanx-pascal.json" >fine.json
"$ferry" zoo vgg16 --batch 2 --width-divisor 8 --image 64 --classes 10 -d titanx-pascal -q -o small.json && "$ferry" solve -q small.json -d fine.json -b 80% --limit 20000 -o small.plan >/dev/null || exit 1
printf 'ferry-text/1\ntensor a 1MiB\nop one forward 10us writes a\nop two backward 20us reads a\n' >net.txt
sed 's/"confidence": *"exact"/"confidence": "approximate: sizes"/' net.json >guess.json

# answers COMMAND ARGUMENTS...: kept as answers/COMMAND.N.json, whatever its status
mkdir answers
answers() {
  local n
  n=$(ls answers | grep -c "^$1\.")
  "$ferry" "$@" --json >"answers/$1.$n.json" 2>err
  [ -s "answers/$1.$n.json" ] || { echo "ferry $*: nothing"; cat err; return 1; }
}
# advise asks a service, which has to know a curve
advised() {
  local pid i status=1
  "$ferry" serve --state state --listen "unix:$PWD/socket" >serve.out 2>&1 &
  pid=$!
  for ((i = 0; i < 100; i++)); do
    [ -S socket ] && break
    sleep 0.1
  done
  "$ferry" submit -q alex.json --kind curves --with '{"points":3,"device":"v100","limit_ticks":100}' --fingerprint plain --wait --server "unix:$PWD/socket" >submitted &&
    answers submit net.json --server "unix:$PWD/socket" && answers submit alex.json --kind curves --with '{"points":3,"device":"v100","limit_ticks":100}' --server "unix:$PWD/socket" &&
    answers submit alex.json --kind curves --with '{"points":3,"device":"v100","limit_ticks":100}' --wait --server "unix:$PWD/socket" && answers jobs --server "unix:$PWD/socket" &&
    answers advise plain -s 100% --server "unix:$PWD/socket" && answers advise alex.json -q --host workstation-2x5090 --budget 100%,90% --limit 100 --swap-only && status=0
  kill $pid
  wait $pid
  [ $status = 0 ] || cat serve.out submitted
  return $status
}
with_server() { ! "$ferry" advise plain 2>&1 | grep -q without-server; }
all() {
  answers version && answers devices && answers hosts && answers zoo --list && answers demo && answers info net.json && answers info guess.json -b 100MiB && answers info net.json -d v100 &&
    answers solve net.json -b 60% --limit 20000 && answers solve net.json && answers solve net.json -b 60% --limit 20000 --host hgx-h100 --ranks 4 && answers simulate net.json plan.json --host gb300-x4 --ranks 2 && answers solve net.json -b 20MiB && answers solve alex.json -b 70% --recompute auto --limit 20000 &&
    answers solve net.json -b 60% --noise 10% --limit 20000 && answers solve net.json -b 60% --same-places --limit 20000 && answers solve net.json -b 60% --swap-only --dump x.lp --limit 1000 &&
    answers solve net.json -p g10 -b 80% && answers solve net.json -p lru -b 10% && answers solve --policy list && answers prove net.json plan.json && answers prove small.json plan.json && answers explain net.json plan.json &&
    answers explain alex.json both.json && answers compare net.json -b 20MiB,60% --limit 1000 --policies ferry,ferry-all,lru,g10 && answers check net.json plan.json &&
    answers simulate net.json plan.json && answers simulate net.json plan.json --noise 10% && answers simulate net.json plan.json alex.json both.json && answers plot net.json plan.json &&
    answers curve net.json small.json --host gb300-x4 -b 1MiB,60% --limit 100 && answers min-memory net.json small.json --host gb300-x4 --limit 10 && answers curve net.json -b 20MiB,50%,100% --limit 1000 && answers min-memory alex.json --limit 10 --sections off && answers min-memory alex.json -s 0% --limit 1 --host 1MiB &&
    answers max-batch alexnet --image 64 --width-divisor 8 --classes 100 -d v100 -b 32MiB --limit 10 --fine 64 --most 256 && answers pack alex.json small.json -d v100 -b 300MiB --points 3 --limit 10 --sections off --compare &&
    answers pack alex.json small.json -d v100 -b 300MiB --points 3 --limit 10 --sections off --leave alex@5s && answers pack alex.json small.json -d v100 -b 1MiB --points 3 --limit 10 --sections off && answers pack alex.json small.json --host workstation-2x5090 -b 300MiB --limit 10 --swap-only && answers whatif net.json -d v100,p100 -b 20MiB,60% --limit 1000 &&
    answers whatif net.json --host hgx-h100 --ranks 1,4 -b 60% --limit 1000 && answers import net.txt && answers convert net.json -o plain.json && answers convert plan.json -f packed -o packed.json && answers rewrite net.json plan.json -o rewritten.json &&
    answers export net.json plan.json --chrome steps.json && answers export net.json plan.json --walk walk.json && answers doctor && answers doctor net.json plan.json &&
    answers link && answers link --all && answers replay small.json small.plan && answers replay small.json small.plan --host hgx-h100 --ranks 2 && answers replay small.json small.plan --compute real --steps 2 --compare &&
    { ! with_server || advised; }
}
fit() {
  python3 - "$schemas" answers <<'END'
import glob, json, os, sys
from jsonschema import Draft202012Validator
bad = 0
for path in sorted (glob.glob (sys.argv[2] + "/*.json")):
    command = os.path.basename (path).split (".")[0]
    schema = json.load (open ("%s/answer-%s.schema.json" % (sys.argv[1], command)))
    Draft202012Validator.check_schema (schema)
    for e in Draft202012Validator (schema).iter_errors (json.load (open (path))):
        print (path, list (e.absolute_path)[:6], e.message[:160])
        bad += 1
sys.exit (bad > 0)
END
}
complete() { # what has --json is tried here; those that need a GPU, a service or files of others are named
  local command
  for command in $("$ferry" completion --list | sed -n 's/ --json$//p'); do
    [[ $command =~ ^(advise|jobs|submit|token)$ ]] && ! with_server && continue
    [ -e "answers/$command.0.json" ] && [ -e "$schemas/answer-$command.schema.json" ] || echo "$command has no schema or was not tried"
  done
}
strict() { # a field that is taken away, or one too many, is noticed
  python3 - "$schemas" answers <<'END'
import json, sys
from jsonschema import Draft202012Validator
v = Draft202012Validator (json.load (open (sys.argv[1] + "/answer-curve.schema.json")))
curve = json.load (open (sys.argv[2] + "/curve.0.json"))
assert v.is_valid (curve)
for spoil in (lambda c: c["points"][0].pop ("budget_bytes"), lambda c: c.update (odd=1), lambda c: c["points"][1].update (gap="much")):
    other = json.loads (json.dumps (curve))
    spoil (other)
    assert not v.is_valid (other)
END
}
claim "every command answers in JSON" all
claim "every answer fits its schema" fit
claim "every command with --json has a schema that is tried" complete
claim "a schema notices what is missing, odd or wrong" strict
finish
