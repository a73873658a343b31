#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# clang-format decides the layout. Versions differ, so only version 14 (Debian 12) is asked, where it
# is there. What it does badly is small and known (columns of short comments, tables of texts, breaks
# of long conditions), so a file may differ from it in one line of ten, or in ten lines: enough for
# these, too little for another style. Tables may stand between `clang-format off` and `on`; .def
# files are tables.
. "$(dirname "$0")/common.bash"

if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "clang-format 14 is not here"
  exit 77
fi

# All at once: to start clang-format takes ten times as long as to format a file.
files=$({ sources; sources tests; } | grep -vE '\.(def|cu)$')
ideal=$(mktemp -d)
trap 'rm -rf "$ideal"' EXIT
# shellcheck disable=SC2086
cp --parents .clang-format $files "$ideal" && (cd "$ideal" && clang-format --style=file -i $files) || exit 1

formatted() {
  local differing allowed
  ! cmp -s "$1" "$ideal/$1" || return 0
  differing=$(diff "$1" "$ideal/$1" | grep -c '^<')
  allowed=$(($(wc -l <"$1") / 10))
  [ "$differing" -le 10 ] || [ "$differing" -le "$allowed" ] ||
    { echo "$1: $differing lines differ; clang-format -i $1"; return 1; }
}

tabs() {
  grep -nP '\t| +$' $(sources) $(sources tests) | head -n 20
  return 0
}

for file in $files; do
  claim "$file is formatted" formatted "$file"
done
claim "no tabs, no blanks at the end of a line" tabs
finish
