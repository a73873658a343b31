/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/memory/memory.h"
/* Address space that was used up in sizes that do not come back.  What nobody has is made whole
   again, for which the device has to be quiet, and cut into the sizes that are asked for now. */

static bool is_vacant (const tensor *t) {
  return t->n_pages > 0 && !t->live && !t->reserved && t->holds == 0;
}

static int32_t end_of (const tensor *t) {
  return t->first_page + t->n_pages;
}

/* The device is quiet. */
static bool empty (shim *s, tensor *t) {
  bool good = true;
  host_drop (s, t);
  for (int32_t p = t->first_page; p < end_of (t); p++) {
    good = (!s->pages[p].mapped || page_unmap (s, p)) && good;
    s->pages[p] = (page){ .tensor = s->pages[p].tensor, .chunk = NONE };
  }
  t->in_copy = t->out_copy = t->past_in = t->past_out = t->check = 0;
  t->users = t->past = t->behind = 0;
  t->empty = good;
  return good;
}

/* The first page behind it that is somebody's, which small tensors' are as well. */
static int32_t gap_end (const shim *s, const tensor *t) {
  int32_t p = end_of (t);
  while (p < s->next_page && s->pages[p].tensor == 0 && s->pages[p].state != PAGE_HERE)
    p++;
  return p;
}

static void drop_row (shim *s, tensor *t) {
  t->n_pages = 0;
  s->spare_rows++;
}

/* With those that follow it without anybody between. */
static void join (shim *s, int32_t i) {
  tensor *t = &s->tensors[i];
  for (;;) {
    int32_t gap = gap_end (s, t), next = gap < s->next_page ? s->pages[gap].tensor - 1 : NONE;
    if (next < 0 || !s->tensors[next].empty)
      break;
    int32_t end = end_of (&s->tensors[next]);
    area_own (s, i, end_of (t), end);
    t->n_pages = end - t->first_page;
    drop_row (s, &s->tensors[next]);
    s->tensors[next].empty = false;
  }
}

static void make_whole (shim *s) {
  int32_t kept = 0;
  shim_note (s, s->real.ctx_synchronize ());
  for (int32_t i = 0; i < s->n_tensors; i++)
    if (is_vacant (&s->tensors[i]) && !s->tensors[i].empty)
      (void)empty (s, &s->tensors[i]);
  for (int32_t i = 0; i < s->n_tensors; i++)
    if (s->tensors[i].n_pages > 0 && s->tensors[i].empty)
      join (s, i);
  for (int32_t i = 0; i < s->n_free; i++)
    if (s->tensors[s->free_tensors[i]].n_pages > 0)
      s->free_tensors[kept++] = s->free_tensors[i];
  s->n_free = kept;
}

/* The smallest that is large enough: its place among those that are free. */
static int32_t find (const shim *s, int32_t pages) {
  int32_t best = NONE;
  for (int32_t i = 0; i < s->n_free; i++) {
    const tensor *t = &s->tensors[s->free_tensors[i]];
    if (t->empty && t->n_pages >= pages &&
        (best == NONE || t->n_pages < s->tensors[s->free_tensors[best]].n_pages))
      best = i;
  }
  return best;
}

/* Its first pages stay its own, one behind them stays empty, and the rest is another's. */
static void cut (shim *s, int32_t i, int32_t pages) {
  int32_t first = s->tensors[i].first_page + pages, end = end_of (&s->tensors[i]);
  int32_t rest = end - first > 1 ? area_row (s) : NONE;
  s->tensors[i].n_pages = pages;
  area_own (s, NONE, first, end);
  if (rest == NONE)
    return;
  area_lay (s, rest, first + 1, end - first - 1);
  s->tensors[rest].empty = true;
  s->free_tensors[s->n_free++] = rest;
}

int32_t vacant_take (shim *s, int32_t pages) {
  int32_t place = find (s, pages);
  if (place == NONE) {
    make_whole (s);
    place = find (s, pages);
  }
  if (place == NONE)
    return NONE;
  int32_t t = s->free_tensors[place];
  s->free_tensors[place] = s->free_tensors[--s->n_free];
  cut (s, t, pages);
  return t;
}

int32_t vacant_page (shim *s) {
  int32_t i = vacant_take (s, 1);
  if (i == NONE)
    return NONE;
  int32_t page = s->tensors[i].first_page;
  area_own (s, NONE, page, page + 1);
  s->tensors[i].empty = false;
  drop_row (s, &s->tensors[i]);
  return page;
}
