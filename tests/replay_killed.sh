#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A replay that is killed at any instant leaves nothing behind: no file, no shared memory, no process.
set -u
ferry=$builddir/ferry
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" && mkdir tmp
export TMPDIR=$work/tmp
passed=0 failed=0
"$ferry" zoo vgg16 --batch 2 --width-divisor 8 --image 64 --classes 10 -d titanx-pascal -q -o t.json &&
  "$ferry" solve t.json -p capuchin -d titanx-pascal --budget 1GiB -q -o p.json >/dev/null || exit 1

ours() { ls -A /dev/shm 2>/dev/null | grep -i ferry; ls -A tmp; ipcs -m 2>/dev/null | awk -v me="$(id -un)" '$3 == me'; }
before=$(ours) killed=0
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
  clock=real; [ $((round % 3)) = 0 ] && clock=virtual
  "$ferry" replay t.json p.json --verify --clock $clock -n 5000 >out 2>err &
  child=$!
  sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
  kill -9 $child 2>/dev/null && killed=$((killed + 1))
  wait $child 2>/dev/null
  if [ "$(ours)" = "$before" ] && ! kill -0 $child 2>/dev/null && [ "$(ls | sort | tr '\n' ' ')" = "err out p.json t.json tmp " ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)); echo "round $round left behind:"; ours; ls
  fi
done
if [ "$killed" -ge 8 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "only $killed were still running"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
