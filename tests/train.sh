#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `ferry replay --compute real` on stored files.
. "$(dirname "$0")/rules/common.bash"
scratch

one_line() { [ "$(wc -l <err)" = 1 ] && grep -q '^ferry: ' err && [ ! -s out ]; }
says() { grep -qF -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
is_json() { ! command -v python3 >/dev/null || python3 -m json.tool "$1" >/dev/null; }
loss() { awk -v step="$1" '$1 == step && NF >= 2 { print $2; exit }' out; }
real() { run "$1" replay t.json p.json --compute real "${@:2}"; }

sed 's/"granule_bytes": *[0-9]*/"granule_bytes": 4096/' "$srcdir/data/devices/titanx-pascal.json" >d.json
sed 's/"granule_bytes": *[0-9]*/"granule_bytes": 4096/' "$srcdir/data/devices/h100-sxm.json" >h.json
small="--width-divisor 12 --depth-divisor 6 --seq 32 --classes 64 --optimizer adam -q"
"$ferry" zoo gpt2 --batch 4 $small -d d.json -o t.json &&
  { "$ferry" solve t.json -d d.json --budget 2MiB --recompute auto --sections off --order as-is --limit 1000 -q -o p.json >report || [ $? = 4 ]; } &&
  "$ferry" solve t.json -d d.json --budget 6MiB -p checkpoint-every-k -q -o again.json >report &&
  "$ferry" zoo gpt2 --batch 4 $small --dtype bf16 -d h.json -o half.json &&
  { "$ferry" solve half.json -d h.json --budget 1300KiB --recompute auto --sections off --order as-is --limit 1000 -q -o half.plan.json >report || [ $? = 4 ]; } &&
  sed 's/"compute": *{[^}]*}, *//' t.json >bare.json &&
  "$ferry" solve bare.json -d d.json -q -o bare.plan.json >/dev/null &&
  "$ferry" zoo resnet18 --batch 2 --width-divisor 16 --image 32 --classes 10 -d d.json -q -o pictures.json &&
  "$ferry" solve pictures.json -d d.json -q -o pictures.plan.json >/dev/null || exit 1
awk 'BEGIN { for (i = 0; i < 3000; i++) print "the quick brown fox jumps over the lazy dog" }' >text

trains() { real 0 && [ ! -s err ] && [ "$(grep -cE '^ +[0-9]+ +[0-9]+\.[0-9]{6}$' out)" = 20 ] && [ "$(grep -c ' equal$' out)" = 6 ] &&
  awk -v a="$(loss 0)" -v b="$(loss 19)" 'BEGIN { exit !(b < 0.9 * a) }'; }
compared() { real 0 --compare --steps 5 && [ "$(grep -c '^ .* equal$' out)" = 5 ] && grep -q 'are, bit for bit, those of the unswapped step' out; }
same() { real 0 --compare --steps 3 --json && mv out first && real 0 --compare --steps 3 --json && cmp first out && is_json out &&
  grep -q '"same": *true' out; }
lost() { # not every copy matters: what is zero at first is zero on the host as well
  local n
  for n in $(seq 20 40); do
    timeout 300 "$ferry" replay t.json p.json --compute real --compare --steps 3 --fault lost=$n >out 2>err || break
  done
  grep -q DIFFERENT out && grep -q 'tensors are not what the unswapped step made' out
}
wait_lost() {
  local n
  for n in $(seq 1 40); do
    timeout 300 "$ferry" replay t.json p.json --compute real --compare --steps 2 --fault wait=$n >out 2>err || break
  done
  grep -q DIFFERENT out
}
counter() {
  run 0 replay t.json again.json --compute real --compare --steps 3 &&
    run 1 replay t.json again.json --compute real --compare --steps 3 --fault counter=1 && grep -q 'the loss of step 1 is the first' out
}
reads() { real 0 --data text --steps 30 && awk -v a="$(loss 0)" -v b="$(loss 29)" 'BEGIN { exit !(b < 0.8 * a) }'; }
other_data() { real 0 --steps 1 && local made; made=$(loss 0); real 0 --steps 1 --data text && [ "$(loss 0)" != "$made" ]; }
no_file() { real 3 --data /nowhere.txt && one_line && says '/nowhere.txt: cannot be opened'; }
empty() { : >empty && real 3 --data empty && one_line && says 'a text of 0 bytes: nothing can be learned from it'; }
pictures() { run 2 replay pictures.json pictures.plan.json --compute real --data text && one_line && says 'this network learns pictures'; }
bare() { run 3 replay bare.json bare.plan.json --compute real && one_line && says 'does not say what it calculates: traces of `ferry zoo` do'; }
half() {
  run 0 replay half.json half.plan.json --compute real --compare --steps 3 && grep -q 'calculated by our kernels' out &&
    grep -q 'are, bit for bit, those of the unswapped step' out && [ "$(grep -c '^ .* equal$' out)" = 3 ] && grep -qE '^out +[1-9]' out &&
    run 1 replay half.json half.plan.json --compute real --compare --steps 3 --fault lost=9 && grep -q DIFFERENT out
}
spin() { run 2 replay t.json p.json --data text && one_line && says '--data goes with --compute real' &&
  run 2 replay t.json p.json --compare && says '--compare goes with --compute real'; }
verified() { real 2 --verify && one_line && says 'do without --verify'; }
cuda() {
  run 2 replay t.json p.json --own-kernels && says '--own-kernels goes with --compute real' &&
    { [ -e /dev/nvidiactl ] || { run 69 replay t.json p.json --compute real --driver cuda && one_line && says 'no driver'; }; }
}
times() { # a trace of the times that were seen is the trace itself where time is counted
  "$ferry" solve t.json -d d.json --budget 64MiB -q -o kept.json >report && run 0 replay t.json kept.json --compute real --steps 3 --times seen.json &&
    "$ferry" info --json t.json >a && "$ferry" info --json seen.json >b && cmp a b && real 2 --steps 2 --times no.json && says '--times is for a plan that moves'
}
none() { real 2 --bytes none && one_line && says 'do without --bytes none'; }
chrome() { real 0 --steps 2 --chrome c.json && is_json c.json && grep -q 'copies to the host' c.json; }

claim "twenty steps train, their losses printed, and take the time that was predicted" trains
claim "compared, each loss and all parameters are equal" compared
claim "as JSON it is the same in every run" same
claim "a copy that is left out is seen" lost
claim "a wait that is left out is seen" wait_lost
claim "a copy of dropout with a wrong counter is seen" counter
claim "a text is learned" reads
claim "the text is what is read" other_data
claim "a text that is not there is named" no_file
claim "an empty text is refused" empty
claim "a text for pictures is refused" pictures
claim "a trace that does not say what it calculates is refused" bare
claim "bf16 is calculated by kernels, and swapped as it is unswapped" half
claim "options of --compute real are refused without it" spin
claim "patterns and numbers do not go together" verified
claim "a missing GPU is told" cuda
claim "the times that the ops took make a trace" times
claim "numbers need bytes" none
claim "what was seen is written as a Chrome trace" chrome
finish
