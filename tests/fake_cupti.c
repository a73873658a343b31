/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A CUPTI for the emulated device: it lets each op end by itself and reads the device's clock
   around it. Records come in another order than calls, from a thread of its own. FAKE_CUPTI says
   what goes wrong: `escape`: a call that did not come through the shim; `lose`: one launch is not
   told; `taken`: another has the callbacks; `silent`: no records can be had; `untimed`: no number
   of ours is told, and no call; `runtime`: launches come from within the runtime, under whose
   number they are told. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "executor/shim/record/cupti_types.h"

#pragma GCC visibility push(default) /* the build hides what is not told to be seen */

#define CUPTI(field, symbol, parameters) cupti_result symbol parameters;
#include "executor/shim/record/cupti.def"
#undef CUPTI

enum { OF_THE_DRIVER = 1 << 24 };
enum { FAILED = 999, THE_END = 12, TAKEN = 39, ODD_ONE = 5 };
enum { KERNEL_BYTES = 216, COPY_BYTES = 96, SET_BYTES = 88, OUTER_BYTES = 24 }; /* of version 13 */

static int (*synchronize) (void);
static int (*now) (int64_t *ns);
static cupti_give *give;
static cupti_take *take;
static cupti_callback *callback;
static void *user;
static uint8_t *buffer;
static size_t room, used;
static uint32_t calls;
static int64_t start_ns, number_of_op;
static int records_calls;

static int wrong (const char *how) {
  const char *asked = getenv ("FAKE_CUPTI");
  return asked != NULL && strcmp (asked, how) == 0;
}

static int64_t clock_ns (void) {
  int64_t ns = 0;
  if (synchronize == NULL) {
    void *driver = dlopen (getenv ("FERRY_REAL_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    *(void **)&synchronize = dlsym (driver, "cuCtxSynchronize");
    *(void **)&now = dlsym (driver, "emuNow");
  }
  synchronize ();
  now (&ns);
  return ns;
}

/* ---- records ---- */

static void *hand_over (void *unused) {
  (void)unused;
  if (buffer != NULL)
    take (NULL, 0, buffer, room, used);
  buffer = NULL;
  used = 0;
  return NULL;
}

static void in_thread (void *(*work) (void *)) {
  pthread_t t;
  if (pthread_create (&t, NULL, work, NULL) == 0)
    pthread_join (t, NULL);
}

static void *record (int kind, size_t bytes) {
  size_t most = 0;
  if (buffer != NULL && used + bytes > room)
    in_thread (hand_over);
  if (buffer == NULL)
    give (&buffer, &room, &most);
  uint8_t *at = buffer + used;
  memset (at, 0xee, bytes);
  memcpy (at, &kind, sizeof kind);
  used += bytes;
  return at;
}

cupti_result cuptiActivityRegisterCallbacks (cupti_give *g, cupti_take *t) {
  give = g;
  take = t;
  return 0;
}

cupti_result cuptiActivityEnable (int32_t kind) {
  records_calls |= kind == CUPTI_CALL;
  return wrong ("silent") ? FAILED : 0;
}

cupti_result cuptiActivityFlushAll (uint32_t flag) {
  if (flag != CUPTI_FORCED)
    return FAILED;
  in_thread (hand_over);
  return 0;
}

static size_t bytes_of (const uint8_t *at) {
  int32_t kind;
  memcpy (&kind, at, sizeof kind);
  return kind == CUPTI_KERNEL  ? KERNEL_BYTES
         : kind == CUPTI_COPY  ? COPY_BYTES
         : kind == CUPTI_SET   ? SET_BYTES
         : kind == CUPTI_OUTER ? OUTER_BYTES
                               : SIZE_MAX;
}

cupti_result cuptiActivityGetNextRecord (uint8_t *from, size_t valid, void **at) {
  uint8_t *next = *at == NULL ? from : (uint8_t *)*at + bytes_of (*at);
  if (next >= from + valid)
    return THE_END;
  *at = next;
  return 0;
}

/* ---- calls ---- */

static void tell (const char *function, uint32_t call) {
  if (callback == NULL)
    return;
  cupti_call c = { 0, function, "", call };
  for (; c.site < 2; c.site++)
    callback (user, CUPTI_DRIVER_CALLS, 1, &c);
}

/* The runtime's call, in which the driver's is made. */
static void tell_runtime (int32_t site, uint32_t call) {
  cupti_call c = { site, "cudaLaunchKernel_v7000", "", call };
  if (callback != NULL)
    callback (user, CUPTI_RUNTIME_CALLS, 1, &c);
}

static void *escape (void *unused) {
  (void)unused;
  tell ("cuCtxSynchronize", calls); /* of no interest */
  tell ("cuMemAlloc_v2", calls);
  return NULL;
}

cupti_result cuptiActivityPushExternalCorrelationId (int32_t sort, uint64_t number) {
  calls++;
  if (calls == ODD_ONE && wrong ("escape"))
    in_thread (escape);
  if (sort == CUPTI_CUSTOM && !(wrong ("lose") && calls >= ODD_ONE)) {
    bool nested = wrong ("runtime");
    if (nested)
      tell_runtime (0, calls);
    tell ("cuLaunchKernel", nested ? calls + OF_THE_DRIVER : calls);
    if (nested)
      tell_runtime (1, calls);
  } else
    tell ("cuMemcpyDtoH_v2", calls);
  number_of_op = (int64_t)number;
  start_ns = clock_ns ();
  return 0;
}

cupti_result cuptiActivityPopExternalCorrelationId (int32_t sort, uint64_t *number) {
  int64_t end_ns = clock_ns ();
  *number = (uint64_t)number_of_op;
  if (sort == CUPTI_CUSTOM) {
    cupti_kernel *k = record (CUPTI_KERNEL, KERNEL_BYTES);
    k->start_ns = (uint64_t)start_ns;
    k->end_ns = (uint64_t)end_ns;
    k->call = calls;
  } else {
    int kind = sort == CUPTI_CUSTOM + 1 ? CUPTI_COPY : CUPTI_SET;
    cupti_copy *c = record (kind, kind == CUPTI_COPY ? COPY_BYTES : SET_BYTES);
    c->start_ns = (uint64_t)start_ns;
    c->end_ns = (uint64_t)end_ns;
    c->call = calls;
  }
  /* The number stands before the record of a call, and only there. */
  if (!records_calls || wrong ("untimed") || (wrong ("runtime") && sort == CUPTI_CUSTOM))
    return 0;
  cupti_outer *o = record (CUPTI_OUTER, OUTER_BYTES);
  *o = (cupti_outer){ CUPTI_OUTER, sort, *number, calls, 0 };
  return 0;
}

cupti_result cuptiSubscribe (void **subscriber, cupti_callback *f, void *with) {
  if (wrong ("taken") || wrong ("untimed"))
    return TAKEN;
  *subscriber = &callback;
  callback = f;
  user = with;
  return 0;
}

cupti_result cuptiEnableDomain (uint32_t enable, void *subscriber, int32_t domain) {
  bool known = domain == CUPTI_DRIVER_CALLS || domain == CUPTI_RUNTIME_CALLS;
  return enable == 1 && subscriber == &callback && known ? 0 : FAILED;
}
