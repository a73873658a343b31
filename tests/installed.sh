#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What a user gets: `make install` into an empty folder has the program, the library, the header, the
# manual pages, the completion and the devices, and an example builds against it through pkg-config.
set -u
case $COMPILE_FLAGS in
  *-fsanitize*) echo "a library with sanitizers cannot be linked plainly"; exit 77 ;;
esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! "${MAKE:-make}" -s -C "$builddir" install DESTDIR="$root" >"$root/log" 2>&1; then
  cat "$root/log"
  exit 1
fi
passed=0 failed=0
prefix=$root$prefix
there() {
  local path
  for path in "$@"; do
    if [ -s "$prefix/$path" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not installed: $path"; fi
  done
}
there bin/ferry lib/libferry.so include/ferry.h lib/pkgconfig/ferry.pc \
  share/man/man1/ferry.1 share/bash-completion/completions/ferry
for command in $("$builddir/ferry" completion --list | awk '{ print $1 }' | sort -u); do
  there "share/man/man1/ferry-$command.1"
done
for device in "$srcdir"/data/devices/*.json; do
  [ ! -e "$device" ] || there "share/ferry/devices/${device##*/}"
done
# Moved to another place, the program still finds its devices.
if [ -d "$srcdir/data/devices" ]; then
  if [ "$(env -u FERRY_DATADIR "$prefix/bin/ferry" devices)" = "$("$builddir/ferry" devices)" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "the installed program does not find its devices"
  fi
fi
export prefix
example=$(bash "$srcdir/tests/example/build.sh" "$prefix/bin" "$prefix/lib" 2>&1) || failed=$((failed + 1))
echo "$example" | grep -v passed
passed=$((passed + $(sed -n 's/^\([0-9]*\) passed.*/\1/p' <<<"$example" | tail -n 1 | grep . || echo 0)))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
