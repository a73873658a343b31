#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernels for a GPU as text: nvcc makes them, a program has them built in, and one that has not says
# so when a GPU is to calculate.
. "$(dirname "$0")/rules/common.bash"
source=$PWD
scratch
eval "flags=($COMPILE_FLAGS)" # their quotes are the shell's

cat >main.c <<'END'
#include "executor/calculate/cuda.h"
#include <stdio.h>
#include <string.h>
static int missing (const char *text, const char *const *names) {
  int n = 0;
  for (int i = 0; i < KERNELS; i++) {
    char entry[200];
    snprintf (entry, sizeof entry, ".entry %s(", names[i]);
    if (strstr (text, entry) == NULL)
      n = printf ("no %s\n", names[i]);
  }
  return n;
}
int main (void) {
  return missing (calculate_ptx_fp32, kernel_names_fp32) || missing (calculate_ptx_bf16, kernel_names_bf16);
}
END
built_in() { # by the assembler, which looks in the build's folder
  [ -s "$builddir/executor/gpu/fp32.ptx" ] || { echo "nvcc is not here"; return 77; }
  (cd "$builddir" && ${CC:-cc} "${flags[@]}" -DWITH_PTX -o "$work/main" "$work/main.c" "$source/executor/calculate/ptx.c" libcore.a -lm) && ./main
}

# A driver as a GPU has it: the emulated one without its own door for kernels, of which it finds any.
cat >found.c <<'END'
int cuModuleGetFunction (void **function, void *module, const char *name);
int cuModuleGetFunction (void **function, void *module, const char *name) {
  *function = module;
  return name == 0;
}
END
says_so() {
  ! grep -q '^#define WITH_PTX' "$builddir/config.h" || { echo "they are built in"; return 77; }
  mkdir driver && objcopy --redefine-sym emuRegisterKernel=emuNobody --redefine-sym cuModuleGetFunction=emuFunction "$builddir/libemu.a" emu.a &&
    ${CC:-cc} "${flags[@]}" -fvisibility=default -shared -o driver/libcuda.so.1 found.c -Wl,--whole-archive emu.a -Wl,--no-whole-archive "$builddir/libcore.a" -lm ||
    return 1
  run 0 zoo gpt2 --batch 1 --width-divisor 12 --depth-divisor 12 --seq 16 --classes 32 -d titanx-pascal -q -o step.json && run 0 solve step.json -q -o plan.json || return 1
  export LD_LIBRARY_PATH=$PWD/driver
  run 69 replay step.json plan.json --driver cuda --compute real --steps 1 &&
    [ "$(wc -l <err)" = 1 ] && grep -q 'no GPU kernels built in: configure it --with-cuda' err || cat out err
}

claim "both texts of the kernels are built in, with an entry for each" built_in
claim "a program without them says how to have them" says_so
finish
