#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A folder with sources is a room. Rooms of a layer know each other in one direction: there is no
# circle of them, neither of includes nor of calls, which are read from the built objects. Where there
# is one, its edges are named, the one with the fewest calls first: cut that one.
. "$(dirname "$0")/common.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. tests/rules/rooms.bash

no_circle_of_includes() { includes . "$1" | circle "$1"; }
no_circle_of_calls() { calls . "$builddir" "$1" | circle "$1"; }
no_circle_of_both() { { includes . "$1"; calls . "$builddir" "$1"; } | circle "$1"; }

# Calls between layers go downward too, whatever header declares what is called.
declare -A rank=([base]=0 [trace]=1 [solver]=2 [executor]=2 [plot]=3 [library]=3 [server]=4 [cli]=5)
downward() {
  local from to reason
  calls . "$builddir" "$layers" | while read -r from to reason; do
    from=${from%%/*} to=${to%%/*}
    [ "$from" = "$to" ] || [ "${rank[$to]}" -lt "${rank[$from]}" ] || echo "$from calls $to: $reason"
  done
}

# A room's README says what it is, and where to begin, in some ten lines.
rooms() { # LAYER: its folders with sources, without itself
  find "$1" -mindepth 2 -name '*.[ch]' -printf '%h\n' | sort -u
}
described() {
  local room
  for room in $(rooms "$1"); do
    [ -f "$room/README.md" ] || { echo "$room has no README.md"; continue; }
    grep -q "^Where: " "$room/README.md" || echo "$room/README.md does not say where to begin"
    [ "$(wc -l <"$room/README.md")" -le 12 ] || echo "$room/README.md is longer than a room's"
  done
}

# Three rooms that include each other in a circle, and two that call each other without a header.
planted() {
  local tree=$work/tree made=$work/made
  mkdir -p "$tree"/odd/{a,b,c,d,e} "$made"/odd/{a,b,c,d,e}
  echo '#include "odd/b/b.h"' >"$tree/odd/a/a.h"
  echo '#include "odd/c/c.h"' >"$tree/odd/b/b.h"
  echo '#include "odd/d/d.h"' >"$tree/odd/c/c.h"
  echo '#include "base/error.h"' >"$tree/odd/d/d.h"
  [ -z "$(includes "$tree" odd | circle odd)" ] || echo "a chain of includes is called a circle"
  echo '#include "odd/a/a.h"' >>"$tree/odd/c/c.h"
  [ "$(includes "$tree" odd | circle odd | grep -c ' includes odd/[abc]/[abc].h$')" = 3 ] ||
    echo "a circle of three rooms is not found"
  echo 'int up (void); int down (void) { return up (); }' >"$tree/odd/d/low.c"
  echo 'int down (void); int up (void) { return 1; } int top (void) { return down (); }' >"$tree/odd/e/high.c"
  for it in d/low e/high; do
    ${CC:-cc} -c "$tree/odd/$it.c" -o "$made/odd/$it.o" || return 1
  done
  calls "$tree" "$made" odd | circle odd | grep -qxF '1 in odd/d look at odd/e: odd/d/low.c calls up of odd/e/high.c' ||
    echo "a call that makes a circle is not named"
  echo 'int down (void) { return 1; }' >"$tree/odd/d/low.c"
  ${CC:-cc} -c "$tree/odd/d/low.c" -o "$made/odd/d/low.o" || return 1
  [ -z "$(calls "$tree" "$made" odd | circle odd)" ] || echo "a chain of calls is called a circle"
}

claim "planted circles are found and named" planted
for layer in $layers; do
  [ -d "$layer" ] || continue
  claim "no circle of includes between the rooms of $layer/" no_circle_of_includes "$layer"
  claim "no circle of calls between the rooms of $layer/" no_circle_of_calls "$layer"
  claim "no circle of both between the rooms of $layer/" no_circle_of_both "$layer"
  claim "each room of $layer/ says what it is, and where to begin" described "$layer"
done
claim "calls go downward from layer to layer" downward
finish
