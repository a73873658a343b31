#!/bin/bash
# A folder with sources is a room. Rooms of a layer know each other in one direction: there is no
# circle of them, neither of includes nor of calls, which are read from the built objects. Where there
# is one, its edges are named, the one with the fewest calls first: cut that one.
. "$(dirname "$0")/common.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An edge is a line "FROM TO REASON".
includes() { # ROOT LAYER
  (cd "$1" && grep -rnE '^ *# *include *"[a-z0-9_/]+/[^/"]+"' --include='*.[ch]' --include='*.def' --include='*.cu' "$2") |
    awk -F: '{
      from = $1; sub (/\/[^\/]*$/, "", from)
      match ($0, /"[^"]*"/); header = substr ($0, RSTART + 1, RLENGTH - 2)
      to = header; sub (/\/[^\/]*$/, "", to)
      if (from != to) print from, to, $1 ":" $2 " includes " header }'
}

# What is built of the layer's sources; objects whose source is gone are not looked at.
objects() { # ROOT BUILD LAYERS
  local file path
  # shellcheck disable=SC2086
  (cd "$1" && find $3 -name '*.c') | sort | while read -r file; do
    for path in "$2/${file%/*}/.libs/$(basename "${file%.c}").o" "$2/${file%.c}.o"; do
      if [ -f "$path" ]; then echo "$path"; break; fi
    done
  done
}

calls() { # ROOT BUILD LAYERS
  local list
  list=$(objects "$1" "$2" "$3")
  [ -n "$list" ] || return 0
  # shellcheck disable=SC2086
  ${NM:-nm} -A $list | awk -v build="$2/" '
    { at = index ($0, ".o:"); file = substr ($0, length (build) + 1, at - length (build) - 1)
      sub (/\/\.libs\//, "/", file); room = file; sub (/\/[^\/]*$/, "", room)
      if ($(NF - 1) == "U") { n++; user[n] = file; uses[n] = $NF; in_room[n] = room }
      else if ($(NF - 1) ~ /^[TDBRVWC]$/) { home[$NF] = room; made_by[$NF] = file } }
    END { for (i = 1; i <= n; i++)
      if (uses[i] in home && home[uses[i]] != in_room[i])
        print in_room[i], home[uses[i]], user[i] ".c calls " uses[i] " of " made_by[uses[i]] ".c" }'
}

# circle LAYER: edges on standard input; prints one circle of the layer's rooms, nothing without one.
circle() {
  awk -v layer="$1" '
    function inside(room) { return room == layer || index (room, layer "/") == 1 }
    inside($1) && inside($2) && $1 != $2 {
      key = $1 " " $2; if (!(key in count)) { from[++n] = $1; to[n] = $2; why[n] = substr ($0, length (key) + 2) }
      count[key]++ }
    END {
      # Edges that lead nowhere go, until none does; what is left leads round.
      do { gone = 0; split ("", out)
        for (i = 1; i <= n; i++) if (!dead[i]) out[from[i]] = 1
        for (i = 1; i <= n; i++) if (!dead[i] && !(to[i] in out)) { dead[i] = 1; gone = 1 } } while (gone)
      for (i = 1; i <= n; i++) if (!dead[i] && !(from[i] in next_edge)) next_edge[from[i]] = i
      for (i = 1; i <= n && dead[i]; i++) ;
      if (i > n) exit
      for (room = from[i]; !(room in seen); room = to[next_edge[room]]) seen[room] = 1
      first = room
      do { i = next_edge[room]; key = from[i] " " to[i]
        print count[key] " in " from[i] " look at " to[i] ": " why[i]; room = to[i] } while (room != first)
    }' | sort -n
}

no_circle_of_includes() { includes . "$1" | circle "$1"; }
no_circle_of_calls() { calls . "$builddir" "$1" | circle "$1"; }
no_circle_of_both() { { includes . "$1"; calls . "$builddir" "$1"; } | circle "$1"; }

# Calls between layers go downward too, whatever header declares what is called.
declare -A rank=([base]=0 [trace]=1 [solver]=2 [executor]=2 [plot]=3 [server]=4 [cli]=5)
downward() {
  local from to reason
  calls . "$builddir" "$layers" | while read -r from to reason; do
    from=${from%%/*} to=${to%%/*}
    [ "$from" = "$to" ] || [ "${rank[$to]}" -lt "${rank[$from]}" ] || echo "$from calls $to: $reason"
  done
}

# What a room's README says: what comes in, what goes out, who may call it, in some ten lines.
rooms() { # LAYER: its folders with sources, without itself
  find "$1" -mindepth 2 -name '*.[ch]' -printf '%h\n' | sort -u
}
described() {
  local room part
  for room in $(rooms "$1"); do
    [ -f "$room/README.md" ] || { echo "$room has no README.md"; continue; }
    for part in In Out Callers Where; do
      grep -q "^- $part: " "$room/README.md" || echo "$room/README.md does not say \"$part\""
    done
    [ "$(wc -l <"$room/README.md")" -le 16 ] || echo "$room/README.md is longer than a room's"
  done
}

# "Callers" names layers and rooms; a layer stands for all of its rooms.
uninvited() { # LAYER
  local room callers
  for room in $(rooms "$1"); do
    [ -f "$room/README.md" ] || continue
    callers=$(sed -n 's/^- Callers: //p' "$room/README.md" | sed 's/everyone above trace/solver executor plot server cli trace/' |
      grep -oE '[a-z]+(/[a-z]+)?')
    # shellcheck disable=SC2086
    grep -rlE "^ *# *include *\"$room/[a-z0-9_]+\\.h\"" $layers | while read -r file; do
      for it in $callers "$room"; do
        case $file in "$it"/*) continue 2 ;; esac
      done
      echo "$file includes $room, whose README does not name it among its callers"
    done
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
for layer in ${layers/solver/}; do
  [ -d "$layer" ] || continue
  claim "no circle of includes between the rooms of $layer/" no_circle_of_includes "$layer"
  claim "no circle of calls between the rooms of $layer/" no_circle_of_calls "$layer"
  claim "no circle of both between the rooms of $layer/" no_circle_of_both "$layer"
  claim "each room of $layer/ says what it takes, gives, and for whom" described "$layer"
  claim "each room of $layer/ has the callers that it names" uninvited "$layer"
done
claim "calls go downward from layer to layer" downward
finish
