#!/bin/bash
# Everything that a machine with a GPU and nothing else needs, in one folder and one archive: the
# program, the experiments, the libraries they were linked with, traces, plans, and check.sh.
#   tests/gpu/pack.sh BUILD-FOLDER OUT-FOLDER [small]
# small: little relatives of the networks, which the emulated device can carry too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") out=$2 size=${3:-full}
${MAKE:-make} -s -C "$build" tests/gpu/experiments >&2
rm -rf "$out" && mkdir -p "$out/bin" "$out/lib" "$out/traces" "$out/plans"
cp "$build/ferry" "$build/tests/gpu/experiments" "$build/.libs/libferry-emu.so" "$out/bin"
cp "$here/check.sh" "$out"
# Of the C library itself, the machine's own must serve.
ldd "$build/ferry" "$build/tests/gpu/experiments" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -vE '/(libc|libm|libdl|libpthread|librt)\.so' | sort -u | while read -r lib; do cp -L "$lib" "$out/lib"; done

make_trace() { # NAME DEVICE OPTIONS...
  local name=$1 device=$2
  shift 2
  "$build/ferry" zoo "${name%%-b*}" -d "$device" -q -o "$out/traces/$name.json.zst" "$@"
}
make_plans() { # NAME DEVICE BUDGET...: those that fit
  local name=$1 device=$2
  shift 2
  for budget; do
    "$build/ferry" solve "$out/traces/$name.json.zst" -d "$device" -p capuchin --budget "$budget" \
      -q -o "$out/plans/$name@$budget.json" >/dev/null || echo "no plan: $name in $budget" >&2
  done
}
if [ "$size" = small ]; then
  make_trace vgg16-b8 titanx-pascal --batch 8 --width-divisor 4 --image 64 --classes 10
  make_plans vgg16-b8 titanx-pascal 160MiB 120MiB 112MiB
else
  make_trace vgg16-b64 h100-sxm --batch 64
  make_plans vgg16-b64 h100-sxm 6GiB 4GiB 3GiB
  make_trace vgg16-b256 h100-sxm --batch 256
  make_plans vgg16-b256 h100-sxm 16GiB 12GiB
  make_trace resnet50-b64 h100-sxm --batch 64
  make_plans resnet50-b64 h100-sxm 8GiB 4GiB
  make_trace googlenet-b128 h100-sxm --batch 128
  make_plans googlenet-b128 h100-sxm 6GiB 4GiB
fi
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
echo "$out.tar.gz"
