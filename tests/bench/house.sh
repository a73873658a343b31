#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The house in figures: for each folder its files, lines, functions, those over sixty lines and over eight
# parameters, asserts a thousand lines of C, rooms that stand in a circle, constants that a .c file keeps
# to itself, and words of READMEs. Then the words of docs/, and the program's commands and options.
#   house.sh [TREE [BUILD]]    circles of calls and options are looked for where BUILD is given
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

words() { # FILE...
  cat "$@" /dev/null 2>/dev/null | wc -w
}

row() { # FOLDERS LAYERS NAME
  local files c readmes
  # shellcheck disable=SC2086
  readmes=$(find $1 -name README.md 2>/dev/null)
  # shellcheck disable=SC2086
  files=$(find $1 -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' \) 2>/dev/null | sort)
  [ -n "$files" ] || return 0
  c=$(grep '\.c$' <<<"$files")
  # shellcheck disable=SC2086
  printf '| %s | %d | %d | %s | %s | %s | %s | %d |\n' "$3" "$(wc -l <<<"$files")" "$(cat $files | wc -l)" \
    "$(awk -f "$here/tests/rules/functions.awk" $c /dev/null | awk '
      { n++; lines[n] = $3; long += $3 > 60; wide += $4 > 8 && $2 !~ /^cu[A-Z]/ }
      END { printf "%d | %d | %d", n, long, wide }')" \
    "$(cat $c /dev/null | awk '/(^|[^a-z_])assert \(/ { n++ } END { printf "%.1f", NR ? 1000 * n / NR : 0 }')" \
    "$(for it in $2; do { includes . "$it"; [ -z "$build" ] || calls . "$build" "$it"; } 2>/dev/null |
      in_circles "$it"; done | awk '{ n += $1 } END { if (NR) print n }')" \
    "$(constants $c)" "$(words $readmes)"
}

echo "| folder | files | lines | functions | over 60 lines | over 8 parameters | asserts / 1000 | rooms in circles | private constants | README words |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for layer in base trace solver executor plot server cli; do
  row "$layer" "$layer" "$layer"
  for room in $(find "$layer" -mindepth 2 -name '*.[ch]' -printf '%h\n' 2>/dev/null | sort -u); do
    row "$room" "" "&nbsp; $room"
  done
done
layers="base trace solver executor plot server cli"
row "$layers" "$layers" "all"
row tests "" "tests"

echo
printf 'docs/*.md: %d words; README.md: %d; READMEs of folders: %d; CHANGELOG.md: %d\n' "$(words docs/*.md)" "$(words README.md)" \
  "$(find . -name README.md -not -path ./README.md -not -path '*/build*' -exec cat {} + | wc -w)" "$(words CHANGELOG.md)"
[ -z "$build" ] || "$build/ferry" completion --list | awk '
  { commands[$1] = 1; if ($2 != "") { rows++; names[$2] = 1 } }
  END { for (c in commands) n++; for (o in names) k++; printf "%d commands, %d options in them, %d names\n", n, rows, k }'
