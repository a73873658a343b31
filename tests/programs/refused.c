/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Uses what ferry refuses: refused MODULE STEPS NAME; prints what the driver answered. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/programs/gpu.h"

int main (int argc, char **argv) {
  static const char *const names[] = {
    "cuGraphAddMemAllocNode", "cuGraphExecNodeSetParams",
    "cuMemAllocManaged",      "cuMemCreate",
    "cuIpcGetMemHandle",      "cuGreenCtxCreate",
    "cuCtxEnablePeerAccess",  "cuTexObjectCreate",
    "cuMemcpyBatchAsync",     "cuMulticastCreate",
    "cuArrayCreate",          "cuMemBatchDecompressAsync",
  };
  gpu g;
  gpu_open (&g, argc, argv);
  CUdeviceptr a = gpu_alloc (&g, 32768, NULL);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (argc > 3 && strcmp (argv[3], names[i]) == 0) {
      char versioned[64];
      snprintf (versioned, sizeof versioned, "%s_v2", names[i]);
      CUresult (*call) (void *, size_t, size_t, size_t, size_t);
      *(void **)&call = dlsym (g.library, versioned);
      if (call == NULL)
        *(void **)&call = dlsym (g.library, names[i]);
      printf ("%s: %u\n", names[i], call == NULL ? 9999 : call (NULL, 0, 0, 0, 0));
    }
  gpu_free (&g, a, NULL);
  gpu_close (&g);
  return 0;
}
