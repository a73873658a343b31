/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An address is in a range and behind a mapping, and somebody may still need it. */
#include "executor/emu/core.h"

#include <assert.h>

range *memory_range (const machine *m, uint64_t at) {
  range *r = table_find (&m->ranges, at);
  return r != NULL && at - r->at < (uint64_t)r->bytes ? r : NULL;
}

mapping *memory_mapping (const machine *m, uint64_t at) {
  mapping *p = table_find (&m->mappings, at);
  return p != NULL && at - p->at < (uint64_t)p->bytes ? p : NULL;
}

bool memory_is_pinned (const machine *m, uint64_t at) {
  const range *r = memory_range (m, at);
  return r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED);
}

bool memory_is_device (const machine *m, uint64_t at) {
  const range *r = memory_range (m, at);
  return r != NULL && r->kind != RANGE_HOST && r->kind != RANGE_REGISTERED;
}

bool memory_reachable (const machine *m, uint64_t at, int64_t bytes, bool writes) {
  const range *r = memory_range (m, at);
  if (r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED))
    return (uint64_t)bytes <= r->at + (uint64_t)r->bytes - at;
  while (bytes > 0) {
    const mapping *p = memory_mapping (m, at);
    unsigned int need = writes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (p == NULL || (p->access & need) != need)
      return false;
    int64_t here = p->bytes - (int64_t)(at - p->at);
    here = here < bytes ? here : bytes;
    at += (uint64_t)here;
    bytes -= here;
  }
  return true;
}

void memory_places (const machine *m, const touch *t,
                    void (*piece) (void *context, const race_range *r), void *context) {
  race_range r = { .place = (int64_t)t->at,
                   .bytes = t->bytes,
                   .owner = m->config.owners ? t->tag : 0,
                   .writes = (t->how & EMU_WRITES) != 0,
                   .begins = (t->how & EMU_BEGINS) != 0 };
  if (!memory_is_device (m, t->at)) {
    piece (context, &r);
    return;
  }
  uint64_t at = t->at;
  for (int64_t left = t->bytes; left > 0;) {
    const mapping *p = memory_mapping (m, at);
    if (p == NULL)
      return; /* a fault when it runs */
    int64_t into = (int64_t)(at - p->at);
    /* Host addresses are below 2^47: places move above them. */
    r.place = ((int64_t)1 << 61) + p->place + into;
    r.bytes = p->bytes - into < left ? p->bytes - into : left;
    r.owner = m->config.owners ? p->at - (uint64_t)p->place : 0;
    piece (context, &r);
    at += (uint64_t)r.bytes;
    left -= r.bytes;
  }
}

bool memory_in_use (const machine *m, uint64_t at, int64_t bytes) {
  assert (bytes >= 0);
  for (int32_t i = 0; i < m->n_streams; i++)
    for (const command *c = m->streams[i]->head; c != NULL; c = c->next)
      for (int32_t k = 0; k < c->n_touches; k++)
        if (c->touches[k].at < at + (uint64_t)bytes &&
            at < c->touches[k].at + (uint64_t)c->touches[k].bytes)
          return true;
  return false;
}
