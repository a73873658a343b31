#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Everything that a machine with a GPU and nothing else needs, in one folder and one archive: the
# program, the experiments, the libraries they were linked with, traces, plans, and check.sh.
#   tests/gpu/pack.sh BUILD-FOLDER OUT-FOLDER [small]
# small: little relatives of the networks, which the emulated device can carry too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") out=$2 size=${3:-full}
# A GPU is to calculate there; the emulated device has its kernels from the program.
[ "$size" = small ] || grep -q '^#define WITH_PTX' "$build/config.h" || { echo "$build: configure --with-cuda first" >&2; exit 1; }
programs="$build/ferry $build/tests/gpu/experiments $build/tests/gpu/copies"
${MAKE:-make} -s -C "$build" tests/gpu/experiments tests/gpu/copies >&2
rm -rf "$out" && mkdir -p "$out/bin" "$out/lib" "$out/traces" "$out/plans"
# shellcheck disable=SC2086
cp $programs "$build/libferry-emu.so" "$out/bin"
cp "$build/libferry-shim.so" "$out/bin"
if [ -e "$build/tests/programs/libferry-shim.so" ]; then mkdir "$out/bin/ways" && cp "$build/tests/programs/libferry-shim.so" "$out/bin/ways"; fi
# A program under ferry has the libraries of its own machine, and ferry those that lie here.
if command -v patchelf >/dev/null; then patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$out/bin/ferry"; fi
cp "$here/torch_run.sh" "$here/torch_run.py" "$here/where.sh" "$here/where.py" "$here/check.sh" "$here/train.sh" "$here/train.rows" "$here/pytorch.py" "$here/torch_ways.py" "$out"
for it in executor/torch/ferry_torch tests/torch; do
  mkdir -p "$out/torch/$it" && cp "$here/../../$it"/*.py "$out/torch/$it"
done
mkdir -p "$out/share/ferry" && cp -r "$here/../../data/devices" "$out/share/ferry" # ferry looks there
mkdir -p "$out/torch/tests/gpu" && cp "$here"/torch.sh "$here"/ladder.sh "$here"/torch_*.py "$out/torch/tests/gpu"
# Of the C library itself, the machine's own must serve.
# shellcheck disable=SC2086
ldd $programs | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -vE '/(libc|libm|libdl|libpthread|librt)\.so' | sort -u | while read -r lib; do cp -L "$lib" "$out/lib"; done

make_trace() { # NAME DEVICE OPTIONS...
  local name=$1 device=$2
  shift 2
  "$build/ferry" zoo "${name%-b*}" -d "$device" -q -o "$out/traces/$name.json.zst" "$@"
}
# Beside a plan lies how it was made, so that it can be made again for another link.
make_plan() { # NAME DEVICE BUDGET LABEL OPTIONS...: if one fits
  local name=$1 device=$2 budget=$3 label=$4 status=0 plan
  shift 4
  plan=$out/plans/$name@$budget$label
  "$build/ferry" solve "$out/traces/$name.json.zst" -d "$device" --budget "$budget" "$@" -q -o "$plan.json" >/dev/null ||
    status=$?
  if [ $status = 0 ] || [ $status = 4 ]; then
    echo "--budget $budget $*" >"$plan.how"
  else
    rm -f "$plan.json"
    echo "no plan: $name in $budget $*" >&2
  fi
}
make_plans() { # NAME DEVICE BUDGET...: by a policy that only moves
  local name=$1 device=$2
  shift 2
  for budget; do make_plan "$name" "$device" "$budget" "" -p capuchin; done
}
share() { # NAME PERCENT: so much of the peak, in MiB
  local peak
  peak=$("$build/ferry" info --json "$out/traces/$1.json.zst" | sed -n 's/^ *"peak_bytes": \([0-9]*\).*/\1/p')
  echo "$((peak / 100 * $2 / 1048576))MiB"
}
if [ "$size" = small ]; then
  cp "$here/train_small.rows" "$out/train.rows"
  make_trace vgg16-b8 titanx-pascal --batch 8 --width-divisor 4 --image 64 --classes 10
  make_plans vgg16-b8 titanx-pascal 160MiB 120MiB 112MiB
else
  card=h100-sxm
  make_trace vgg16-b256 $card --batch 256
  make_plans vgg16-b256 $card 16GiB 12GiB
  make_plan vgg16-b256 $card 12GiB ,sections --sections auto --limit 100000
  make_plan vgg16-b256 $card 12GiB ,recompute --recompute auto --limit 100000
  for it in vgg16-b64 resnet50-b64 googlenet-b128 inception3-b64 densenet121-b64 unet3d-b2 seq2seq-b64 \
    bert-base-b16 gpt2-b4 llama-1b-b1 vit-b-b64; do
    make_trace $it $card --batch "${it##*-b}"
    make_plans $it $card "$(share $it 90)" "$(share $it 75)" "$(share $it 60)"
  done
fi
# A small network to train: with room to spare, and in the least memory of these.
mkdir "$out/train"
"$build/ferry" zoo vgg16 --batch 8 --width-divisor 4 --image 64 --classes 10 -d titanx-pascal -q -o "$out/train/trace.json.zst"
for budget in 1GiB 112MiB; do
  plan=$out/train/least.json
  [ $budget = 1GiB ] && plan=$out/train/ample.json
  "$build/ferry" solve "$out/train/trace.json.zst" -p capuchin --budget $budget -q -o "$plan" >/dev/null
done
level=6
[ "$size" = full ] || level=1
tar -C "$(dirname "$out")" -I "gzip -$level" -cf "$out.tar.gz" "$(basename "$out")"
echo "$out.tar.gz"
