/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jansson never sees an allocation fail: its reader is left by a jump, and what it had read so far
   is lost.  The functions that it gets are otherwise malloc and free, so that a program which uses
   Jansson beside us notices nothing; one that gave it functions of its own keeps them. */
#include "base/json_load.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

static _Thread_local jmp_buf *starved_to; /* NULL: this thread reads nothing */

static void *take (size_t size) {
  void *p = malloc (size);
  if (!p && size && starved_to)
    longjmp (*starved_to, 1);
  return p;
}

static void install (void) {
  json_malloc_t get;
  json_free_t give;
  json_get_alloc_funcs (&get, &give);
  if (get == malloc && give == free)
    json_set_alloc_funcs (take, free);
}

json_t *json_load_text (const char *text, int64_t size, json_error_t *said, bool *starved) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  jmp_buf here;
  pthread_once (&once, install);
  *said = (json_error_t){ .text = "" };
  *starved = false;
  if (setjmp (here)) {
    starved_to = NULL;
    *starved = true;
    return NULL;
  }
  starved_to = &here;
  json_t *root = json_loadb (text, (size_t)size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, said);
  starved_to = NULL;
  return root;
}
