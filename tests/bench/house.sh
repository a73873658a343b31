#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The house in figures: for each folder its files, lines, functions, those over sixty lines and over
# eight parameters, rooms that stand in a circle, and constants that a .c file keeps to itself.
#   house.sh [TREE [BUILD]]    circles of calls are looked for where BUILD is given
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(cd "${1:-$here}" && pwd) build=${2:+$(cd "$2" && pwd)}
. "$here/tests/rules/rooms.bash"
cd "$tree" || exit 1

in_circles() { # LAYER: rooms from which some way leads back to them; edges on standard input
  awk -v layer="$1" '
    index ($1 "/", layer "/") == 1 && index ($2 "/", layer "/") == 1 { at[$1] = at[$2] = 1; way[$1, $2] = 1 }
    END { for (k in at) for (i in at) for (j in at) if ((i, k) in way && (k, j) in way) way[i, j] = 1
      for (i in at) n += (i, i) in way
      print n + 0 }'
}

# Numbers with a name in a .c file: of an enum, a #define, a static const.
constants() {
  awk '
    /^ *# *define +[A-Za-z_0-9]+ +[-(]*[0-9]/ { n++ }
    /^ *(static )?const (int|int32_t|int64_t|double|float|uint32_t|uint64_t) [A-Za-z_0-9]+ = / { n++ }
    /^ *enum .*{/ { inside = 1 }
    inside { line = $0; gsub (/\/\*.*\*\//, "", line); n += gsub (/[A-Z_0-9]+ = /, "", line) }
    inside && /}/ { inside = 0 }
    END { print n + 0 }' "$@" /dev/null
}

row() { # FOLDERS LAYERS NAME
  local files c
  # shellcheck disable=SC2086
  files=$(find $1 -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' \) 2>/dev/null | sort)
  [ -n "$files" ] || return 0
  c=$(grep '\.c$' <<<"$files")
  # shellcheck disable=SC2086
  printf '| %s | %d | %d | %s | %s | %s |\n' "$3" "$(wc -l <<<"$files")" "$(cat $files | wc -l)" \
    "$(awk -f "$here/tests/rules/functions.awk" $c /dev/null | awk '
      { n++; lines[n] = $3; long += $3 > 60; wide += $4 > 8 && $2 !~ /^cu[A-Z]/ }
      END { printf "%d | %d | %d", n, long, wide }')" \
    "$(for it in $2; do { includes . "$it"; [ -z "$build" ] || calls . "$build" "$it"; } 2>/dev/null |
      in_circles "$it"; done | awk '{ n += $1 } END { if (NR) print n }')" \
    "$(constants $c)"
}

echo "| folder | files | lines | functions | over 60 lines | over 8 parameters | rooms in circles | private constants |"
echo "|---|---|---|---|---|---|---|---|"
for layer in base trace solver executor plot server cli; do
  row "$layer" "$layer" "$layer"
  for room in $(find "$layer" -mindepth 2 -name '*.[ch]' -printf '%h\n' 2>/dev/null | sort -u); do
    row "$room" "" "&nbsp; $room"
  done
done
layers="base trace solver executor plot server cli"
row "$layers" "$layers" "all"
row tests "" "tests"
