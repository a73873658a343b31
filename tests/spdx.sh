#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Puts the licence's line into every source that has none: tests/spdx.sh [--check]. With --check it
# names those and changes nothing.
set -eu
cd "$(dirname "$0")/.."
line='SPDX-License-Identifier: GPL-3.0-or-later'
status=0
while read -r file; do
  case $file in
    *.c | *.h | *.cu | *.def) text="/* $line */" ;;
    *.sh | *.bash | *.py | *.awk | dev | Makefile.am | configure.ac | .ci/run | Containerfile | debian/rules | debian/tests/session) text="# $line" ;;
    *) continue ;;
  esac
  case $file in tests/golden/* | tests/corpus/*) continue ;; esac
  mapfile -n 3 first <"$file"
  [[ ${first[*]-} == *"$line"* ]] && continue
  if [ "${1:-}" = --check ]; then
    echo "$file has no licence line"
    status=1
  elif [[ ${first[0]-} == '#!'* ]]; then
    sed -i "1a $text" "$file"
  else
    sed -i "1i $text" "$file"
  fi
done < <(git ls-files)
exit $status
