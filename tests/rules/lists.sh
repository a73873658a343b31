#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each file stands once in a list of a local.mk or of Makefile.am, and each list is sorted. With
# --update the lists are brought up to date: a file that is gone leaves its list, a new one joins the list
# that has most files of its kind in its folder, or in the nearest folder above.
#
# A list is `NAME = \` or `NAME += \` and one entry a line; a program stands for its source, a folder for
# what is in it. One below a comment that ends in "In this order: ..." keeps its order. A line with more
# entries chooses among what is listed elsewhere.
. "$(dirname "$0")/common.bash"
fragments="Makefile.am $(find $layers tests -name local.mk | sort)"

files() { # what is to be listed: without git, what is in the rooms
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard --deduplicate | while read -r it; do [ ! -e "$it" ] || echo "$it"; done
  else
    find $layers tests -type f
  fi | grep -vE '(^|/)(local\.mk|\.gitignore)$|^(Makefile\.am|configure\.ac|ferry\.(h|pc\.in))$' | sort
}

entries() { # "FRAGMENT LIST ENTRY" for each entry of each list
  awk '
    /^[A-Za-z_0-9]+ \+?= \\$/ { list = $1; on = 1; next }
    on && /^  [^ ]+( \\)?$/ { if ($1 !~ /^\$/) print FILENAME, list, $1; if (!/\\$/) on = 0; next }
    { on = 0 }' $fragments
}

# place: "FRAGMENT LIST" of each file on standard input, none where it is in no list
located() {
  awk '
    function kind(file) { return match (file, /\.[a-z]+$/) ? substr (file, RSTART) : "" }
    NR == FNR { home[$3] = home[$3] (home[$3] == "" ? "" : ";") $1 " " $2; next }
    {
      program = $1; sub (/\.c$/, "", program); found = home[$1]
      if (program != $1 && program in home) found = found (found == "" ? "" : ";") home[program]
      for (folder = $1; sub (/\/[^\/]*$/, "", folder) && folder != "";)
        if (folder in home) found = found (found == "" ? "" : ";") home[folder]
      print $1 "\t" found
    }' <(entries) -
}

unlisted() { files | located | awk -F'\t' '$2 == "" { print $1 }'; }
twice() { files | located | awk -F'\t' '$2 ~ /;/ { print $1 ": in " $2 }'; entries | cut -d' ' -f3 | sort | uniq -d; }
gone() {
  entries | while read -r fragment list it; do
    [ -e "$it" ] || [ -e "$it.c" ] || echo "$fragment: $list: $it is not there"
  done
}

# formed [ADD] [DROP]: each fragment anew, into a folder
formed() { # FOLDER: lists without what is gone, with what "$1/new" says, sorted
  local fragment
  for fragment in $fragments; do
    mkdir -p "$1/$(dirname "$fragment")"
    LC_ALL=C awk -v fragment="$fragment" -v news="$1/new" '
      function exists(path) { return system ("test -e " path " -o -e " path ".c") == 0 }
      function flush(   i, j, swap) {
        if (!fixed)
          for (i = 2; i <= n; i++)
            for (j = i; j > 1 && entry[j - 1] > entry[j]; j--) { swap = entry[j]; entry[j] = entry[j - 1]; entry[j - 1] = swap }
        for (i = 1; i <= n; i++) print "  " entry[i] (i < n ? " \\" : "")
        n = 0; on = 0
      }
      function finish() {
        for (i = 1; i <= added; i++) if (to[i] == fragment " " list) { entry[++n] = add[i]; to[i] = "" }
        flush()
      }
      BEGIN { while ((getline line < news) > 0) { split (line, part, "\t"); add[++added] = part[1]; to[added] = part[2] } }
      /^[A-Za-z_0-9]+ \+?= \\$/ { list = $1; on = 1; n = 0; fixed = before ~ /^# In this order/; print; before = $0; next }
      on && /^  [^ ]+( \\)?$/ { if ($1 ~ /^\$/ || exists($1)) entry[++n] = $1; if (!/\\$/) finish(); next }
      { on = 0; print; before = $0 }' "$fragment" >"$1/$fragment"
  done
}

# Where a new file goes: "FILE<tab>FRAGMENT LIST".
homes() {
  local file folder kind home
  unlisted | while read -r file; do
    kind=${file##*/} kind=${kind##*.} folder=$file home=
    case $file in
      tests/test_*.c) home="tests/local.mk programs_under_test" file=${file%.c} ;;
      tests/bench/bench_*.c) home="tests/bench/local.mk BENCHES" file=${file%.c} ;;
      tests/fuzz_*.c) home="tests/bench/local.mk FUZZERS_ALL" file=${file%.c} ;;
      tests/rules/*.sh) home="tests/local.mk rules_under_test" ;;
      tests/*/*.sh) home="" ;;
      tests/*.sh) home="tests/local.mk scripts_under_test" ;;
    esac
    while [ -z "$home" ] && [[ $folder == */* ]]; do
      folder=${folder%/*}
      home=$(entries | awk -v at="$folder/" -v kind=".$kind" '
        index ($3, at) == 1 && (substr ($3, length ($3) - length (kind) + 1) == kind || kind ~ /^\.(c|h|def)$/ && $3 ~ /\.(c|h|def)$/) { n[$1 " " $2]++ }
        END { for (it in n) if (n[it] > most || n[it] == most && it < best) { most = n[it]; best = it } print best }')
    done
    [ -z "$home" ] || printf '%s\t%s\n' "$file" "$home"
  done
}

sorted() {
  local work fragment
  work=$(mktemp -d)
  : >"$work/new"
  formed "$work"
  for fragment in $fragments; do
    cmp -s "$fragment" "$work/$fragment" || { echo "$fragment: lists are not as $0 --update writes them"; diff "$fragment" "$work/$fragment" | head -n 10; }
  done
  rm -rf "$work"
}

if [ "${1:-}" = --update ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  homes >"$work/new"
  formed "$work"
  for fragment in $fragments; do
    cmp -s "$fragment" "$work/$fragment" || { diff "$fragment" "$work/$fragment" | grep '^[<>]'; cp "$work/$fragment" "$fragment"; }
  done
fi
claim "every file is in a list" unlisted
claim "no file is listed twice" twice
claim "what is listed is there" gone
claim "lists are sorted, one entry a line" sorted
finish
