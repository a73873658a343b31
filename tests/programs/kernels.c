/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The module for the emulated device: each kernel with its parameters, and the time that it takes
   there. */
#include "tests/programs/kernels.h"

#include <stddef.h>

#include "executor/emu/emu.h"

static int64_t time_of (const emu_launch *l) {
  return 20000 + (int64_t)l->grid[0] * l->block[0];
}

#define KERNEL(name, parameters)                    \
  static void run_##name (const emu_launch *l) {    \
    const name##_parameters *p = l->params;         \
    for (long i = 0; l->bytes && i < p->count; i++) \
      name##_thread (p, i);                         \
  }
KERNELS (KERNEL)

/* A kernel's parameters lie as in a struct of them; the last is the count. */
#define SIZE(type, name) sizeof (type),
#define SIZES(name, parameters)                                             \
  static const size_t sizes_##name[] = { parameters (SIZE) sizeof (long) }; \
  enum { N_##name = sizeof sizes_##name / sizeof *sizes_##name };           \
  static emu_param params_##name[N_##name];
KERNELS (SIZES)

static void __attribute__ ((constructor)) lay_out (void) {
#define LAY_OUT(name, parameters)                                        \
  for (size_t i = 0, at = 0; i < N_##name; at += sizes_##name[i++]) {    \
    at = (at + sizes_##name[i] - 1) / sizes_##name[i] * sizes_##name[i]; \
    params_##name[i] = (emu_param){ at, sizes_##name[i] };               \
  }
  KERNELS (LAY_OUT)
}

#define ROW(kernel, parameters) \
  { .name = #kernel,            \
    .params = params_##kernel,  \
    .n_params = N_##kernel,     \
    .run = run_##kernel,        \
    .ns = time_of },
extern const emu_kernel emu_module[];
__attribute__ ((visibility ("default"))) const emu_kernel emu_module[] = { KERNELS (ROW){ 0 } };
