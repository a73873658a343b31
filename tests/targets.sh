#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Files for results: what is wrong with them is said before the work, and nothing that is read is lost.
. "$(dirname "$0")/rules/common.bash"
scratch
export FERRY_DEVICE=titanx-pascal
cat >t.json <<'END'
{ "format": "ferry-trace/1", "batch": 4, "tensors": [ { "bytes": 8388608, "kind": "parameter" },
    { "bytes": 16777216, "split": "batch" }, { "bytes": 16777216 } ],
  "ops": [ { "ns": 3000000, "reads": [0], "writes": [1] }, { "ns": 3000000, "writes": [2] }, { "ns": 3000000, "reads": [0, 1, 2] } ] }
END
"$ferry" solve t.json --limit 1000 -q -o p.json >/dev/null || exit 1
cp t.json kept.json

written="output dump tsv svg html chrome report keep-plan keep-trace times timeline"
targets() { # COMMAND: its options that name a file for a result
  local name
  for name in $("$ferry" completion --list | sed -n "s/^$1 --//p"); do
    [[ " $written " != *" $name "* ]] || echo "$name"
  done
}
operands() { # none of them is there: a target is looked at first
  case $1 in
  prove | explain | check | simulate | plot | export | rewrite | replay) echo no.json no.json ;;
  zoo | max-batch) echo vgg16 ;;
  run | profile) echo -- ./no-program ;;
  link | serve | whatif) ;;
  *) echo no.json ;;
  esac
}
first() {
  local command name tried=0
  for command in $("$ferry" completion --list | awk '{ print $1 }' | sort -u); do
    for name in $(targets "$command"); do
      run 3 "$command" "--$name=none/such" $(operands "$command") && [ "$(wc -l <err)" = 1 ] &&
        grep -q '^ferry: none/such: cannot be created: No such file' err || { echo "$command --$name"; cat err; }
      tried=$((tried + 1))
    done
  done
  [ $tried -ge 30 ] || echo "$tried tried"
}
folder() { # where one is meant, it may be there or not, and pictures may go into it
  local how=(t.json -d titanx-pascal -q --points 3 --limit 10)
  run 0 pack "${how[@]}" -o plans --svg plans/a.svg && [ -s plans/t.json ] && [ -s plans/a.svg ] && run 0 pack "${how[@]}" -o plans || return 1
  run 3 pack "${how[@]}" -o t.json/plans && grep -q 't.json/plans: cannot be created: Not a directory' err || return 1
  run 3 whatif t.json -q -o plans && grep -q 'plans: cannot be written: Is a directory' err
}
own_input() {
  local command name
  for command in info solve curve min-memory compare plot export rewrite explain replay pack whatif import; do
    for name in $(targets "$command"); do
      case $command in plot | export | rewrite | explain | replay) set -- t.json p.json ;; *) set -- t.json ;; esac
      [ $command/$name = pack/output ] && continue
      run 2 "$command" "$@" "--$name=./t.json" && grep -q -- "^ferry: --$name: ./t.json is what is read" err || { echo "$command --$name"; cat err; }
      cmp t.json kept.json || cp kept.json t.json
    done
  done
  run 2 rewrite t.json p.json -o p.json && ln -s t.json link && run 2 solve t.json -o link
}
own_device() { # a card's file is read as well, one of a list too; a name is none
  cp "$FERRY_DATADIR/devices/v100.json" card.json && cp card.json v100 && cp card.json card.kept || return 1
  for it in "solve t.json -d card.json -o" "whatif t.json -q -d v100,./card.json -b 90% -o" "zoo vgg16 --batch 1 -d card.json -o" "link --most 1MiB -d card.json -o" "convert t.json -d v100 --from card.json --scale roofline -o"; do
    run 2 $it ./card.json && grep -q './card.json is what is read' err || { echo "$it"; cat err; }
    cmp card.json card.kept || cp card.kept card.json
  done
  run 0 zoo vgg16 --batch 1 -d v100 -o v100
}
own_plans() { # a plan's name is that of its trace, and so is its place in that folder
  local how=(-d titanx-pascal -q --points 3 --limit 10)
  mkdir -p here/x && cp t.json here/x.json && cp t.json here/x.3.json && cp t.json here/x/x.json || return 1
  run 2 pack here/x.json "${how[@]}" -o here && grep -q -- '--output: here/x.json is what is read; give the plans another folder' err && cmp here/x.json t.json || { cat err; return 1; }
  run 0 pack here/x.3.json here/x.json here/x/x.json "${how[@]}" -o there && [ "$(ls there | wc -l)" = 3 ] || { ls there; cat err; return 1; }
}
in_place() { cp t.json here.json && run 0 convert here.json -f packed -o here.json && run 0 info here.json; }
apart() {
  run 2 plot t.json p.json --svg a --html a && grep -q -- '--svg and --html name the same file, a' err && [ ! -e a ] &&
    run 2 plot t.json p.json --svg a --html ./a && run 2 plot t.json p.json --svg "$PWD/a" --html a && [ ! -e a ] && run 0 plot t.json p.json --svg plans/b --html b &&
    run 2 solve t.json -o a --dump a && [ ! -e a ] && run 0 plot t.json p.json --svg /dev/null --html /dev/null
}
all_asked_for() { # the JSON of what-if is no reason to leave out its columns
  local how=(whatif t.json -q -b 90%,100% --limit 1000)
  run 0 "${how[@]}" --tsv one && run 0 "${how[@]}" -o answer --tsv two && cmp one two && [ -s answer ] && [ ! -s out ] &&
    run 0 "${how[@]}" --json --tsv three && cmp one three && cmp answer out
}
standard() { # neither is a folder, nor there twice
  run 2 pack t.json -o - && grep -q -- '--output: a folder is wanted' err && [ ! -e ./- ] && run 2 prove - - && grep -q 'only one FILE can be standard input' err || return 1
  "$ferry" whatif t.json -q -b 100% --limit 10 --array 1/1 -o - >out && [ ! -e ./- ] && "$ferry" whatif t.json -q -b 100% --limit 10 --json | cmp out -
}
claim "a file that cannot be made is told before anything is read" first
claim "a folder for results may be there, or be made" folder
claim "no result takes the place of what is read" own_input
claim "no result takes the place of a device's file" own_device
claim "no plan of a pack takes the place of a trace, or of another's" own_plans
claim "only a form of the same may" in_place
claim "every file that is asked for is written" all_asked_for
claim "standard input and output are no folders, and there once" standard
claim "two results do not share a file" apart
finish
