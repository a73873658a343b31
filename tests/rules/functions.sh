#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A function takes at most eight parameters: what needs more takes a request, a struct with names. Those
# over sixty lines are listed as a question; a long one that is right is most often a table.
. "$(dirname "$0")/common.bash"

functions() { awk -f tests/rules/functions.awk "$@"; }
# A driver's own entries, which the emulator has and the shim wraps, take what CUDA says.
greedy() { functions "$@" | awk '$4 > 8 && $2 !~ /^(cu[A-Z]|wrap_)/ { print $1 ": " $2 " takes " $4 " parameters" }'; }

checked=$(sources "$layers" | grep -E '\.[ch]$')
no_function_takes_too_many() {
  # shellcheck disable=SC2086
  greedy $checked
}

planted() {
  local file
  file=$(mktemp)
  printf '%s\n' 'static int nine (int a, int b, int (*c) (int, int), int d, int e,' \
    '                 int f, int g, int h, int i) {' '  return a;' '}' \
    'int eight (int a, int b, int c, int d, int e, int f, int g, int (*h) (int, int, int)) {' '}' \
    'const struct row rows[] = {' '  { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 },' '};' \
    'int none (void) {' '  if (1)' '    return 2;' '}' >"$file"
  [ "$(functions "$file" | cut -d' ' -f2- | tr '\n' ';')" = "nine 4 9;eight 2 8;none 4 0;" ] ||
    { echo "functions are not read as they are:"; functions "$file"; }
  rm -f "$file"
}

claim "a function is read with its lines and parameters" planted
claim "no function takes more than eight parameters" no_function_takes_too_many
# shellcheck disable=SC2046
functions $(sources | grep -E '\.[ch]$') | awk '$3 > 60 { print "a question: " $1 ": " $2 " has " $3 " lines" }'
finish
