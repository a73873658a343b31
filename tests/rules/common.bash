# SPDX-License-Identifier: GPL-3.0-or-later
# For the scripts beside this one and a folder above: where things are, and one way to say what is
# wrong.
set -u
cd "${srcdir:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 1
passed=0 failed=0

# Sources of the project, without what is built. Tests count with `sources tests`.
layers="base trace solver executor plot library server cli"
sources() {
  local folders="ferry.h" folder
  for folder in ${1:-$layers}; do
    [ -d "$folder" ] && folders="$folders $folder"
  done
  [ "${1:-}" = tests ] && folders=tests
  find $folders -name '*.[ch]' -o -name '*.def' -o -name '*.cu' | sort
}

# claim TEXT COMMAND...: holds when the command prints nothing and succeeds; 77: it cannot be tried
# here, and says why.
claim() {
  local text=$1 output status=0
  shift
  output=$("$@" 2>&1) || status=$?
  if [ "$status" = 77 ]; then
    printf 'skipped: %s\n%s\n' "$text" "$output"
  elif [ "$status" = 0 ] && [ -z "$output" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'does not hold: %s\n%s\n' "$text" "$output"
  fi
}

# scratch: the program, and a folder to work in that is gone with the script.
scratch() {
  ferry=$builddir/ferry
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work" || exit 1
}

# run STATUS ARGUMENTS...: the program; leaves out and err behind.
run() {
  local expected=$1 status=0
  shift
  "$ferry" "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$expected" ] || { echo "ferry $*: status $status, expected $expected"; cat err; return 1; }
}

finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
