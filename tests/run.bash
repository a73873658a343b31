# SPDX-License-Identifier: GPL-3.0-or-later
# For the scripts that start programs under ferry: the programs, and what they print without it.
. "$(dirname "${BASH_SOURCE[0]}")/rules/common.bash"

if [ "$(uname -m)" != x86_64 ]; then
  echo "the shim is written for x86-64"
  exit 77
fi
if grep -q -- '-fsanitize' <<<"$COMPILE_FLAGS"; then
  echo "a library that is preloaded cannot bring a sanitizer with it"
  exit 77
fi
programs=$builddir/tests/programs
kernels=$programs/kernels.so
for it in "$kernels" "$programs"/{conv,corners,graphs,habits,lstm,mlp,questions,refused} "$builddir/libferry-shim.so"; do
  [ -e "$it" ] || { echo "$it is not made; \`make programs\` makes it"; exit 1; }
done
scratch
mkdir driver && ln -s "$FERRY_EMU" driver/libcuda.so.1

# plain NAME PROGRAM ARGUMENTS...: what the program says on a device that is large enough
plain() {
  LD_LIBRARY_PATH=$work/driver "${@:2}" >"$1.plain"
}

# under NAME OPTIONS... -- PROGRAM ARGUMENTS...: the same under ferry, its report beside it
under() {
  local name=$1
  shift
  "$ferry" run -q --driver emulated --report "$name.json" "$@" >"$name.out" 2>"$name.err"
}

# same NAME OPTIONS... -- PROGRAM ARGUMENTS...: it ends well and says the same, within the budget by the
# emulator's own count
same() {
  local name=$1 status=0
  under "$@" || status=$?
  [ "$status" = 0 ] || { echo "$*: status $status"; cat "$name.err"; return 1; }
  cmp "$name.plain" "$name.out" || { echo "$*"; return 1; }
  [ "$(figure driver_high_bytes "$name")" -le "$(figure budget_bytes "$name")" ] || { echo "$*: over the budget"; return 1; }
}

figure() { # KEY NAME
  sed -n "s/^  \"$1\": \(-\{0,1\}[0-9]*\),\{0,1\}$/\1/p" "$2.json"
}

# kib PERCENT NAME: of what the program holds at once, as its profile in NAME.json says, in whole KiB
kib() {
  echo $(($(figure live_high_bytes "$2") * $1 / 100 / 1024))KiB
}
