/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GPU's kernels as nvcc made them, where ferry was configured --with-cuda. */
#include "config.h"

#include "executor/calculate/cuda.h"

#ifdef WITH_PTX
/* Read by the assembler: as a C array the text, of megabytes, takes the compiler seconds. */
#define TEXT(name, file)                              \
  extern const char name[];                           \
  __asm__ (".pushsection .rodata\n"                   \
           ".hidden " #name "\n.globl " #name "\n"    \
           #name ":\n.incbin \"" file "\"\n.byte 0\n" \
           ".popsection")
TEXT (fp32_text, "executor/gpu/fp32.ptx");
TEXT (bf16_text, "executor/gpu/bf16.ptx");
const char *const calculate_ptx_fp32 = fp32_text;
const char *const calculate_ptx_bf16 = bf16_text;
#else
const char *const calculate_ptx_fp32 = NULL;
const char *const calculate_ptx_bf16 = NULL;
#endif
