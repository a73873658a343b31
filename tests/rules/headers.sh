#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each header compiles alone, twice over, and says in its first lines what it is for.
. "$(dirname "$0")/common.bash"

eval "flags=(${COMPILE_FLAGS:--I. -std=gnu11})" # their quotes are the shell's

compiles() {
  printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
    ${CC:-cc} "${flags[@]}" -Werror -fsyntax-only -x c -
}

says() {
  [[ $(head -n 1 "$1") == '/*'* ]] || echo "$1: the first line is no comment that says the idea"
}

for header in $(sources | grep '\.h$') $(sources tests | grep '\.h$'); do
  claim "$header compiles alone" compiles "$header"
  claim "$header says what it is for" says "$header"
done
finish
