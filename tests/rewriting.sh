#!/bin/bash
# Sections and recompute as people meet them: what may be asked for, what is answered where nothing
# fits, what explain says of a plan, and that a plan file alone is enough to rebuild its trace.
. "$(dirname "$0")/rules/common.bash"
scratch

number() { grep -oE "\"$1\": ?-?[0-9]+" "${2:-out}" | head -n 1 | grep -oE -- '-?[0-9]+$'; }
one_line() { [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || { cat out err; return 1; }; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
# of PLAN KEY: all numbers behind the key in explain's list, added up
told() { sed "/\"$1\"/,/^  ]/!d" explained | grep -oE "\"$2\": ?[0-9]+" | grep -oE '[0-9]+$' | awk '{ sum += $1 } END { printf "%.0f", sum }'; }
limit=(--limit 20000 -q)

"$ferry" zoo vgg16 --batch 16 --width-divisor 8 --device titanx-pascal -q -o vgg.json || exit 1
"$ferry" zoo resnet18 --batch 16 --width-divisor 4 --device h200 -q -o res.json || exit 1

# ---- what may be asked for ----

parts_asked() { # in numbers that no op can run in, one part, none, words
  local it
  for it in 1 0; do run 2 solve vgg.json -b 70% --sections $it && one_line && complains "--sections: $it is not between 2 and" || return 1; done
  for it in on -3 4x 1e3 ''; do run 2 solve vgg.json -b 70% --sections "$it" && one_line && complains 'is not auto, off or a number of parts' || return 1; done
  run 2 solve vgg.json -b 70% --sections 17 && one_line && complains 'no op can run in 17 parts, 16 are the most \(the batch is 16\)' &&
    run 2 solve vgg.json -b 70% --sections 9007199254740993 && one_line && run 2 solve vgg.json -b 70% --sections 99999999999999999999 && one_line
}
order_asked() {
  run 2 solve vgg.json -b 70% --section-order depth && one_line && complains 'give --sections auto too' &&
    run 2 solve vgg.json -b 70% --section-order level --sections off && one_line &&
    run 2 solve vgg.json -b 70% --sections auto --section-order dept && one_line && complains 'did you mean depth' &&
    run 2 solve vgg.json -b 70% --recompute yes && one_line && complains 'is not one of off\|cheap\|auto\|only'
}
no_parts() { # a trace whose ops cannot be cut, and nothing is known of what they calculate
  sed -E 's/, *"parts": *[0-9]+//; s/"parts": *[0-9]+,? *//; s/, *"compute": *\{[^}]*\}//' vgg.json >whole.json
  run 0 info whole.json && ! grep -q 'with sections' out &&
    run 2 solve whole.json -b 70% --sections 2 && one_line && complains 'no op can run in 2 parts, 1 are the most' &&
    run 4 solve whole.json -b 70% --sections auto --recompute cheap "${limit[@]}" -o p.json && run 0 check whole.json p.json &&
    run 1 solve whole.json -b 40MiB --sections auto "${limit[@]}" && one_line && complains 'which has no parts'
}

claim "a number of parts that cannot be is refused with the most there can be" parts_asked
claim "an order of parts without parts is refused, as is a word that is none" order_asked
claim "a trace that cannot be cut says so" no_parts
finish
