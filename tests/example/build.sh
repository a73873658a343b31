#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# build.sh BINDIR LIBDIR: builds the example against an installed ferry through pkg-config, in C and,
# where there is a C++ compiler, in C++, and runs it. `prefix` is where ferry was installed.
set -eu
bindir=$1 libdir=$2
here=$(dirname "${BASH_SOURCE[0]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0

export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset PKG_CONFIG_SYSROOT_DIR
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs ferry)
${CC:-cc} -Wall -Werror -o "$work/step_time" "$here/step_time.c" $flags
passed=$((passed + 1))
if command -v g++ >/dev/null && [[ $flags != *sanitize* ]]; then
  g++ -x c++ -Wall -Werror -fsyntax-only "$here/step_time.c" $(pkg-config --define-variable=prefix="$prefix" --cflags ferry)
  passed=$((passed + 1))
fi

# The library and the program say the same of the same files.
"$work/step_time" "$here/trace.json" "$here/plan.json" >"$work/out"
step=$("$bindir/ferry" simulate --json "$here/trace.json" "$here/plan.json" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p')
grep -q "a step takes $step ns" "$work/out" || { cat "$work/out"; echo "ferry simulate says $step"; exit 1; }
passed=$((passed + 1))

# And a mistake is one line with the exit status of the command.
status=0
"$work/step_time" "$here/trace.json" /nowhere 2>"$work/err" || status=$?
[ "$status" = 3 ] && [ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; exit 1; }
passed=$((passed + 1))

# A plan made by the library is legal for the program, and its proof holds there.
${CC:-cc} -Wall -Werror -o "$work/solve" "$here/solve.c" $flags
"$work/solve" "$here/trace.json" "$here/device.json" 3072 "$work/plan.json" >"$work/out"
step=$("$bindir/ferry" simulate --json "$here/trace.json" "$work/plan.json" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p')
grep -q "a step takes $step ns in" "$work/out" || { cat "$work/out"; echo "ferry simulate says $step"; exit 1; }
"$bindir/ferry" prove "$here/trace.json" "$work/plan.json" >/dev/null
passed=$((passed + 1))
status=0
"$work/solve" "$here/trace.json" "$here/device.json" 1024 "$work/none.json" 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -qE 'no plan fits in .*; ask for ' "$work/err" && [ ! -e "$work/none.json" ] || { cat "$work/err"; exit 1; }
passed=$((passed + 1))

# The library's defaults are the program's: a device by name, the reserve of a trace that guesses.
sed 's/"confidence": "exact"/"confidence": "approximate: sizes"/' "$here/trace.json" >"$work/guess.json"
for trace in "$here/trace.json" "$work/guess.json"; do
  for budget in 0 16777216; do
    "$work/solve" "$trace" "$bindir/../share/ferry/devices/v100.json" $budget "$work/by_library.json" >/dev/null
    "$bindir/ferry" solve "$trace" -d v100 $([ $budget = 0 ] || echo "-b ${budget}B") --proof -o "$work/by_program.json" >/dev/null
    [ "$(sed 's/"made_by".*//' "$work/by_program.json" | tr -d ' \n' | grep -o '"budget_bytes":[0-9]*,')" = \
      "$(tr -d ' \n' <"$work/by_library.json" | grep -o '"budget_bytes":[0-9]*,')" ] || { echo "$trace, $budget: another budget"; exit 1; }
    cost=$(for plan in by_library by_program; do "$bindir/ferry" simulate --json "$trace" "$work/$plan.json"; done | grep '"step_ns"' | sort -u | wc -l)
    [ "$cost" -le 1 ] || { echo "$trace, $budget: another step"; exit 1; }
  done
done
passed=$((passed + 1))

# Someone else's executor carries out what a plan says, to its end.
${CC:-cc} -Wall -Werror -o "$work/executor" "$here/executor.c" $flags
[ "$(wc -l <"$here/executor.c")" -le 90 ]
"$work/executor" "$here/trace.json" "$here/plan.json" >"$work/out"
grep -q '^2 steps: 12 ops, 8 copies' "$work/out" || { cat "$work/out"; exit 1; }
passed=$((passed + 1))

# The archive links with what pkg-config --static names.
if [ -e "$libdir/libferry.a" ]; then
  static=$(pkg-config --static --define-variable=prefix="$prefix" --cflags --libs ferry)
  ${CC:-cc} -Wall -Werror -o "$work/static" "$here/step_time.c" ${static/-lferry/$libdir/libferry.a}
  env -u LD_LIBRARY_PATH "$work/static" "$here/trace.json" "$here/plan.json" | cmp - <("$work/step_time" "$here/trace.json" "$here/plan.json")
  passed=$((passed + 1))
fi
echo "$passed passed, 0 failed"
