#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests as data: each folder under tests/cases with a file `cmd` is one. cmd runs in a copy of the
# folder, beside its traces and plans, with `ferry` on the path; what it prints is compared with `stdout` and `stderr` (absent:
# empty) and its status with `status` (absent: 0). GOLDEN=update rewrites them: read the diff.
set -u
cases=$srcdir/tests/cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$builddir/ferry" "$work/bin/ferry"
export PATH="$work/bin:$PATH" LC_ALL=C.UTF-8 COLUMNS=80 DATA="$srcdir/data" DOCS="$srcdir/docs" TRACES="$srcdir/tests/cases"
passed=0 failed=0

while read -r cmd; do
  folder=$(dirname "$cmd") name=${cmd#"$cases"/}
  rm -rf "$work/here" "$work/got"
  cp -r "$folder" "$work/here" && chmod -R u+w "$work/here" && mkdir "$work/got"
  (cd "$work/here" && bash cmd >"$work/got/stdout" 2>"$work/got/stderr" </dev/null
    echo $? >"$work/got/status")
  ok=1
  for part in stdout stderr status; do
    expected=$folder/$part
    if [ "${GOLDEN:-}" = update ]; then
      cp "$work/got/$part" "$expected"
      if [ ! -s "$expected" ] || { [ $part = status ] && [ "$(cat "$expected")" = 0 ]; }; then
        rm "$expected"
      fi
      continue
    fi
    if [ -f "$expected" ]; then
      diff -u "$expected" "$work/got/$part" || ok=0
    elif [ $part = status ]; then
      [ "$(cat "$work/got/status")" = 0 ] || { echo "status $(cat "$work/got/status")"; cat "$work/got/stderr"; ok=0; }
    else
      diff -u /dev/null "$work/got/$part" || ok=0
    fi
  done
  if [ $ok = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "does not hold: ${name%/cmd}"; fi
done < <(find "$cases" -name cmd | sort)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
