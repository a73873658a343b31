/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/emu_calls.h"

emu_case e;
driver *const d = &e.d;

void start (int clock) {
  emu_config c = emu_case_config (clock == 0 ? EMU_REAL : EMU_VIRTUAL);
  emu_case_start (&e, &c);
}

const emu_param add_layout[4] = { { offsetof (add_params, at), 8 },
                                  { offsetof (add_params, count), 8 },
                                  { offsetof (add_params, ns), 8 },
                                  { offsetof (add_params, add), 4 } };

void add_run (const emu_launch *l) {
  const add_params *p = l->params;
  uint32_t *words = (uint32_t *)(uintptr_t)p->at;
  for (int64_t i = 0; l->bytes && i < p->count; i++)
    words[i] += p->add;
}

int64_t add_ns (const emu_launch *l) {
  return ((const add_params *)l->params)->ns;
}

static void add_touches (const emu_launch *l, emu_touch tell, void *context) {
  const add_params *p = l->params;
  if (p->count > 0)
    tell (context, p->at, p->count * 4, true);
}

const emu_kernel declared = { "add", add_layout, 4, add_run, add_ns, add_touches };
const emu_kernel silent = { "add_silently", add_layout, 4, add_run, add_ns, NULL };

CUfunction function (const emu_kernel *k) {
  CUmodule module;
  CUfunction f;
  OK (e.register_kernel (k));
  OK (d->module_load (&module, "image"));
  OK (d->module_get_function (&f, module, k->name));
  return f;
}

CUresult add (CUfunction f, CUstream s, CUdeviceptr at, int64_t count, uint32_t by, int64_t ns) {
  void *params[] = { &at, &count, &ns, &by };
  return d->launch (f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL);
}

CUstream stream_new (unsigned int flags) {
  CUstream s;
  OK (d->stream_create (&s, flags));
  return s;
}

CUevent event_new (void) {
  CUevent v;
  OK (d->event_create (&v, CU_EVENT_DEFAULT));
  return v;
}

int64_t time_of (CUevent v) {
  int64_t ns;
  OK (e.event_time (v, &ns));
  return ns;
}

CUdeviceptr alloc (size_t bytes) {
  CUdeviceptr p;
  OK (d->mem_alloc (&p, bytes));
  OK (d->set_bytes (p, 0, bytes));
  return p;
}

uint32_t word (CUdeviceptr at) {
  uint32_t w;
  OK (d->copy_out (&w, at, sizeof w));
  return w;
}

void *pinned (size_t bytes) {
  void *p;
  OK (d->mem_host_alloc (&p, bytes, CU_MEMHOSTALLOC_PORTABLE));
  return p;
}

const CUmemAllocationProp plain = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

CUmemGenericAllocationHandle create (size_t bytes) {
  CUmemGenericAllocationHandle h;
  OK (d->mem_create (&h, bytes, &plain, 0));
  return h;
}

CUdeviceptr reserve (size_t bytes) {
  CUdeviceptr p;
  OK (d->mem_reserve (&p, bytes, 0, 0, 0));
  return p;
}

void allow (CUdeviceptr at, size_t bytes, unsigned int flags) {
  CUmemAccessDesc a = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, flags };
  OK (d->mem_set_access (at, bytes, &a, 1));
}

void map (CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle h) {
  OK (d->mem_map (at, bytes, 0, h, 0));
  allow (at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}
