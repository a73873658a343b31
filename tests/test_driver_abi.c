/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Our prototypes and structures of the driver against cuda.h, where that exists. */
#include "config.h"

#ifdef HAVE_CUDA_H
#include <cuda.h>

#include "executor/driver/types.h"

/* With cuda.h included, the names in these rows are cuda.h's own types. */
#define DRIVER(field, symbol, must, parameters)                                                \
  _Static_assert(__builtin_types_compatible_p (__typeof__ (&symbol), CUresult (*) parameters), \
                 #symbol);
#include "executor/driver/driver.def"
#undef DRIVER
#define CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
#define LAYOUT(type, bytes) _Static_assert(sizeof (type) == (bytes), #type);
#include "executor/driver/consts.def"
#endif
