/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images whose rows have a pitch: filled, copied both ways and within the device by calls for two
   dimensions and, as volumes of fewer rows, for three, on either kind of stream. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu.h"

enum { IMAGES = 8, WIDTH = 200, PITCH = 256, HEIGHT = 1024, N = PITCH * HEIGHT / 4, ROOM = 4 };
enum { PLANE = 128, PLANES = HEIGHT / PLANE };

typedef struct calls {
  CUresult (*copy) (const CUDA_MEMCPY2D *c);
  CUresult (*copy_unaligned) (const CUDA_MEMCPY2D *c);
  CUresult (*copy_async) (const CUDA_MEMCPY2D *c, CUstream s);
  CUresult (*fill) (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height);
  CUresult (*fill_async) (CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                          size_t height, CUstream s);
  CUresult (*fill_halves) (CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                           size_t height, CUstream s);
  CUresult (*set_halves) (CUdeviceptr to, unsigned short value, size_t count);
  CUresult (*copy_box) (const CUDA_MEMCPY3D *c);
  CUresult (*copy_box_async) (const CUDA_MEMCPY3D *c, CUstream s);
} calls;

static unsigned char picture[HEIGHT][WIDTH + ROOM], back[HEIGHT][WIDTH + ROOM];

static void find (const gpu *g, const char *name, void *to) {
  *(void **)to = dlsym (g->library, name);
  if (*(void **)to == NULL) {
    fprintf (stderr, "the driver has no %s\n", name);
    exit (4);
  }
}

static CUDA_MEMCPY2D inwards (CUdeviceptr to) {
  return (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = picture,
                          .srcPitch = sizeof picture[0],
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .dstPitch = PITCH,
                          .dstXInBytes = 8,
                          .WidthInBytes = WIDTH,
                          .Height = HEIGHT };
}

static CUDA_MEMCPY2D outwards (CUdeviceptr from) {
  return (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = from,
                          .srcPitch = PITCH,
                          .srcXInBytes = 8,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .dstPitch = sizeof back[0],
                          .WidthInBytes = WIDTH,
                          .Height = HEIGHT };
}

/* All but the first row, one row up. */
static CUDA_MEMCPY2D upwards (CUdeviceptr to, CUdeviceptr from) {
  return (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = from,
                          .srcPitch = PITCH,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .dstPitch = PITCH,
                          .WidthInBytes = PITCH,
                          .Height = HEIGHT - 1 };
}

/* The inner part of each inner plane, with the same parts of three planes from the host, and back.
 */
static void mix_planes (gpu *g, const calls *c, CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D within = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .srcPitch = PITCH,
                           .srcHeight = PLANE,
                           .srcXInBytes = 16,
                           .srcY = 3,
                           .srcZ = 1,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = to,
                           .dstPitch = PITCH,
                           .dstHeight = PLANE,
                           .dstXInBytes = 4,
                           .dstY = 1,
                           .WidthInBytes = WIDTH,
                           .Height = 12,
                           .Depth = PLANES - 2 };
  CUDA_MEMCPY3D in = within, out = within;
  gpu_must (g, c->copy_box_async (&within, NULL), "cuMemcpy3DAsync");
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = picture;
  in.srcPitch = sizeof picture[0];
  in.srcXInBytes = 1;
  in.dstXInBytes = 40;
  in.WidthInBytes = 100;
  in.Depth = 3;
  gpu_must (g, c->copy_box (&in), "cuMemcpy3D");
  out.srcDevice = to;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back;
  out.dstPitch = sizeof back[0];
  out.dstXInBytes = 0;
  gpu_must (g, c->copy_box (&out), "cuMemcpy3D");
}

static unsigned long digest_of_back (void) {
  unsigned long digest = 0;
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++)
      digest = digest * 31 + back[y][x];
  return digest;
}

static void step (gpu *g, const calls *c, CUdeviceptr *sum, int number) {
  CUdeviceptr image[IMAGES], twice;
  for (int i = 0; i < IMAGES; i++) {
    image[i] = gpu_alloc (g, N, NULL);
    memset (picture, number + i, sizeof picture);
    gpu_must (g, c->fill (image[i], PITCH, 0x3f800000, PITCH / 4, HEIGHT), "cuMemsetD2D32");
    CUDA_MEMCPY2D in = inwards (image[i]);
    gpu_must (g, i % 2 ? c->copy (&in) : c->copy_unaligned (&in), "cuMemcpy2D");
  }
  for (int i = IMAGES - 1; i >= 0; i--) {
    twice = gpu_alloc (g, N, NULL);
    gpu_must (g, c->fill_async (twice, PITCH, 0, PITCH, HEIGHT, NULL), "cuMemsetD2D8Async");
    CUDA_MEMCPY2D up = upwards (twice, image[i]);
    gpu_must (g, c->copy_async (&up, NULL), "cuMemcpy2DAsync");
    LAUNCH (g, "relu", NULL, N, sum, &twice);
    CUDA_MEMCPY2D out = outwards (twice);
    gpu_must (g, c->copy (&out), "cuMemcpy2D");
    printf ("image %d %d: %lx\n", number, i, digest_of_back ());
    gpu_must (g, c->fill_halves (image[i], PITCH, 0x3c00, PITCH / 4, 8, NULL),
              "cuMemsetD2D16Async");
    gpu_must (g, c->set_halves (image[i], 0x3800, PITCH), "cuMemsetD16");
    mix_planes (g, c, twice, image[i]);
    LAUNCH (g, "add", NULL, N, sum, sum, &twice);
    printf ("planes %d %d: %lx\n", number, i, digest_of_back ());
    gpu_free (g, image[i], NULL);
    gpu_free (g, twice, NULL);
  }
}

int main (int argc, char **argv) {
  gpu g;
  calls c;
  gpu_open (&g, argc, argv);
  find (&g, "cuMemcpy2D_v2", &c.copy);
  find (&g, "cuMemcpy2DUnaligned_v2", &c.copy_unaligned);
  find (&g, "cuMemcpy2DAsync_v2", &c.copy_async);
  find (&g, "cuMemsetD2D32_v2", &c.fill);
  find (&g, "cuMemsetD2D8Async", &c.fill_async);
  find (&g, "cuMemsetD2D16Async", &c.fill_halves);
  find (&g, "cuMemsetD16_v2", &c.set_halves);
  find (&g, "cuMemcpy3D_v2", &c.copy_box);
  find (&g, "cuMemcpy3DAsync_v2", &c.copy_box_async);
  CUdeviceptr sum = gpu_alloc (&g, N, NULL);
  for (int i = 0; i < g.steps; i++)
    step (&g, &c, &sum, i);
  gpu_say_digest (&g, "sum", sum, N);
  gpu_close (&g);
  return 0;
}
