#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The front door: ./dev from odd places, with other wishes, with words it does not know. configure and make are
# stand-ins that note how they were called; what they do themselves is tried by whoever builds this.
. "$(dirname "$0")/rules/common.bash"
source=$PWD
scratch
tree="$work/a tree" bin=$work/bin
mkdir "$tree" "$bin"
cp "$source/dev" "$tree/dev"
touch "$tree/Makefile.in"
cat >"$tree/configure" <<'END'
#!/bin/sh
echo "configure $0 $*" >>"$NOTES"
: >Makefile
END
printf '#!/bin/sh\necho "make $*" >>"$NOTES"\n' >"$bin/make"
printf '#!/bin/sh\necho installed\n' >"$bin/dpkg-query"
chmod +x "$tree/configure" "$bin"/*
export PATH=$bin:$PATH NOTES=$work/notes JOBS=1
unset CC CFLAGS LDFLAGS FERRY_BUILD FERRY_CONFIGURE

dev() { # STATUS WAY ARGUMENTS...
  local expected=$1 way=$2 status=0
  shift 2
  : >"$NOTES"
  "$way" "$@" >out 2>err </dev/null || status=$?
  [ $status = "$expected" ] || { echo "$way $*: status $status, expected $expected"; cat err; return 1; }
}
noted() { [ "$(cat "$NOTES")" = "$(printf '%s\n' "$@")" ] || { echo "noted:"; cat "$NOTES"; return 1; }; }

spaces() {
  dev 0 "$tree/dev" build && noted "configure ../configure -q" "make -s -C build -j1" && [ -e "$tree/build/Makefile" ]
}
elsewhere() { # through a link, and beside a folder of the same name that CDPATH knows
  ln -s "$tree/dev" link
  mkdir -p other/tree
  ln -s "$tree" tree
  dev 0 ./link build && noted "make -s -C build -j1" || return 1
  CDPATH=$work/other dev 0 tree/dev build && noted "make -s -C build -j1"
}
out_of_tree() {
  FERRY_BUILD="$work/b c" dev 0 "$tree/dev" build && grep -q '^configure \.\./a tree/configure' "$NOTES" && [ -e "$work/b c/Makefile" ]
}
other_flags() {
  CFLAGS=-O0 dev 0 "$tree/dev" build && noted "configure ../configure -q" "make -s -C build clean" "make -s -C build -j1" || return 1
  CFLAGS=-O0 dev 0 "$tree/dev" build && noted "make -s -C build -j1"
}
demo() {
  mkdir -p "$tree/build" && printf '#!/bin/sh\necho "ferry $*" >>"$NOTES"\n' >"$tree/build/ferry" && chmod +x "$tree/build/ferry"
  CFLAGS=-O0 dev 0 "$tree/dev" demo -d v100 && noted "make -s -C build -j1 ferry" "ferry demo -d v100"
}
help() {
  local word
  for word in help -h --help; do dev 0 "$tree/dev" $word && grep -q '^\./dev demo' out && [ ! -s err ] || return 1; done
}
unknown() { dev 2 "$tree/dev" biuld && [ ! -s out ] && grep -qF 'dev: there is no job `biuld`' err; }
more() { dev 2 "$tree/dev" check tests/cli.sh && noted && grep -q 'check takes nothing more' err; }
read_only() {
  mkdir closed && cp "$tree/dev" closed/ && chmod a-w closed
  [ ! -w closed ] || { echo "root writes everywhere"; return 77; }
  dev 1 closed/dev build && noted && [ "$(wc -l <err)" = 1 ] && grep -q 'run autoreconf -is in a copy' err
}
claim "a source folder may have a space in its name" spaces
claim "it finds its folder from anywhere" elsewhere
claim "so may a build folder elsewhere" out_of_tree
claim "objects made with other flags are not kept" other_flags
claim "the demo builds the program and nothing else" demo
claim "help is a result" help
claim "an unknown job is named" unknown
claim "words after a job are refused before anything is done" more
claim "a source folder that cannot be written is told" read_only
finish
