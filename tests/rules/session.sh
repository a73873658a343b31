#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The session in README.md is what the program prints today.
. "$(dirname "$0")/common.bash"

session() {
  diff -u <(awk '/^    \$ \.\/dev demo/ { on = 1; next } on && /^[^ ]/ { exit } on' README.md |
    sed 's/^    //' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}') \
    <(LC_ALL=C.UTF-8 COLUMNS=80 "$builddir/ferry" demo) ||
    echo "README.md shows another demo than build/ferry demo prints"
}

claim "the session in README.md is what the program prints" session
finish
