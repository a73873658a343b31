/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A launch is put to the test right behind the first one, where all that it reads is there: what it
   writes is filled with a pattern, or set to what it was if it is changed in place, and it is
   launched again, twice.  Digests tell whether its results are the same, and all else what it was.
   Then everything is put back as the first launch left it. */
#include <stdlib.h>
#include <string.h>

#include "executor/shim/again/again.h"
#include "executor/shim/again/pairs.h"
#include "executor/shim/again/repeat.h"
#include "executor/shim/digest/kernels.h"
#include "executor/shim/state/guard.h"

enum { PATTERNS = 2 };

typedef struct held {
  char *before, *behind; /* the bytes: of those that are changed in place; of all */
  uint64_t digest;
} held;

struct trial {
  const int32_t *refs;
  int32_t n_refs;
  held held[AGAIN_REFS];
  char **slabs; /* granules of small tensors, behind the launch */
  int32_t n_slabs;
  uint64_t others; /* the sum of the digests of all other pages */
};

static void trial_free (trial *t) {
  for (int32_t i = 0; i < t->n_refs; i++) {
    free (t->held[i].before);
    free (t->held[i].behind);
  }
  for (int32_t i = 0; i < t->n_slabs; i++)
    free (t->slabs[i]);
  free (t->slabs);
  free (t);
}

static char *copy_of (shim *s, CUdeviceptr at, int64_t bytes) {
  char *to = malloc ((size_t)bytes);
  if (to != NULL && s->real.copy_out (to, at, (size_t)bytes) == CUDA_SUCCESS)
    return to;
  free (to);
  return NULL;
}

trial *trial_begin (shim *s, const step_again *a, const int32_t *refs, int32_t n_refs) {
  trial *t = calloc (1, sizeof *t);
  bool good = t != NULL && s->real.ctx_synchronize () == CUDA_SUCCESS;
  if (t != NULL) {
    t->refs = refs;
    t->n_refs = n_refs;
  }
  for (int32_t i = 0; good && i < n_refs; i++)
    if (again_uses (a, i) == USE_CHANGES) {
      const tensor *x = &s->tensors[refs[i]];
      good = (t->held[i].before = copy_of (s, x->at, x->bytes)) != NULL;
    }
  if (!good && t != NULL)
    trial_free (t);
  return good ? t : NULL;
}

static bool is_own (const trial *t, int32_t tensor) {
  for (int32_t i = 0; i < t->n_refs; i++)
    if (t->refs[i] == tensor)
      return true;
  return false;
}

/* Its pages that are here; those of a freed one hold nothing. */
static bool queue_digest (shim *s, const tensor *x, CUdeviceptr word) {
  bool good = true;
  int32_t end = x->first_page + x->n_pages;
  for (int32_t p = x->first_page; good && p < end; p++) {
    int32_t first = p;
    while (p < end && s->pages[p].state == PAGE_HERE)
      p++;
    if (p > first)
      good = digest_queue (s, s->base + (uint64_t)first * (uint64_t)s->chunk_bytes,
                           (p - first) * s->chunk_bytes, word, s->out);
  }
  return good;
}

/* The word is 0 before and behind it. */
static bool read_word (shim *s, CUdeviceptr word, uint64_t *out) {
  return s->real.stream_synchronize (s->out) == CUDA_SUCCESS &&
         s->real.copy_out (out, word, sizeof *out) == CUDA_SUCCESS &&
         s->real.set_bytes (word, 0, sizeof *out) == CUDA_SUCCESS;
}

static bool digest_one (shim *s, const tensor *x, uint64_t *out) {
  CUdeviceptr word = pairs_word (s);
  return digest_queue (s, x->at, x->bytes, word, s->out) && read_word (s, word, out);
}

/* All that is on the device beside the op's tensors and small ones. */
static bool digest_others (shim *s, const trial *t, uint64_t *out) {
  CUdeviceptr word = pairs_word (s);
  bool good = true;
  for (int32_t i = 0; good && i < s->n_tensors; i++)
    if (!is_own (t, i))
      good = queue_digest (s, &s->tensors[i], word);
  return good && read_word (s, word, out);
}

static CUdeviceptr slab_at (const shim *s, int32_t c) {
  return s->base + (uint64_t)s->chunks[c].page * (uint64_t)s->chunk_bytes;
}

static bool hold_slabs (shim *s, trial *t) {
  bool good = (t->slabs = calloc ((size_t)s->n_chunks + 1, sizeof *t->slabs)) != NULL;
  for (int32_t c = 0; good && c < s->n_chunks; c++)
    if (s->chunks[c].small)
      good = (t->slabs[t->n_slabs++] = copy_of (s, slab_at (s, c), s->chunk_bytes)) != NULL;
  return good;
}

static bool hold_all (shim *s, const step_again *a, trial *t) {
  bool good = repeat_put_aside (s, a->launch) && s->real.ctx_synchronize () == CUDA_SUCCESS;
  for (int32_t i = 0; good && i < t->n_refs; i++) {
    const tensor *x = &s->tensors[t->refs[i]];
    good = (t->held[i].behind = copy_of (s, x->at, x->bytes)) != NULL &&
           digest_one (s, x, &t->held[i].digest);
  }
  return good && digest_others (s, t, &t->others) && hold_slabs (s, t);
}

static bool run_with (shim *s, const step_again *a, const trial *t, unsigned char pattern) {
  bool good = true;
  for (int32_t i = 0; good && i < t->n_refs; i++) {
    const tensor *x = &s->tensors[t->refs[i]];
    if (again_uses (a, i) == USE_WRITES)
      good = s->real.set_bytes (x->at, pattern, (size_t)x->bytes) == CUDA_SUCCESS;
    else if (again_uses (a, i) == USE_CHANGES)
      good = s->real.copy_in (x->at, t->held[i].before, (size_t)x->bytes) == CUDA_SUCCESS;
  }
  return good && s->real.ctx_synchronize () == CUDA_SUCCESS && repeat_launch (s, a->launch) &&
         s->real.ctx_synchronize () == CUDA_SUCCESS;
}

static bool are_slabs_same (shim *s, const trial *t) {
  bool same = true;
  int32_t k = 0;
  for (int32_t c = 0; same && c < s->n_chunks && k < t->n_slabs; c++)
    if (s->chunks[c].small) {
      char *now = copy_of (s, slab_at (s, c), s->chunk_bytes);
      same = now != NULL && memcmp (now, t->slabs[k++], (size_t)s->chunk_bytes) == 0;
      free (now);
    }
  return same;
}

static bool restore_slabs (shim *s, const trial *t) {
  bool good = true;
  int32_t k = 0;
  for (int32_t c = 0; good && c < s->n_chunks && k < t->n_slabs; c++)
    if (s->chunks[c].small)
      good =
          s->real.copy_in (slab_at (s, c), t->slabs[k++], (size_t)s->chunk_bytes) == CUDA_SUCCESS;
  return good;
}

/* Whatever is not as the first launch left it, with its bytes put back. */
static shim_unfit find_changes (shim *s, const step_again *a, const trial *t, bool *good) {
  shim_unfit why = UNFIT_NOT;
  for (int32_t i = 0; *good && i < t->n_refs; i++) {
    const tensor *x = &s->tensors[t->refs[i]];
    uint64_t now;
    *good = digest_one (s, x, &now);
    if (*good && now != t->held[i].digest) {
      why = again_uses (a, i) == USE_READS ? UNFIT_INPUT : UNFIT_RESULT;
      *good = s->real.copy_in (x->at, t->held[i].behind, (size_t)x->bytes) == CUDA_SUCCESS;
    }
  }
  return why;
}

/* Bytes of the program elsewhere are lost where a launch wrote them: that cannot be undone. */
shim_unfit trial_end (shim *s, const step_again *a, trial *t) {
  static const unsigned char pattern[PATTERNS] = { 0x5a, 0xc3 };
  shim_unfit why = UNFIT_NOT;
  uint64_t others = 0;
  bool good = hold_all (s, a, t), ran = false;
  for (int i = 0; good && why == UNFIT_NOT && i < PATTERNS; i++) {
    ran = true;
    good = run_with (s, a, t, pattern[i]);
    why = find_changes (s, a, t, &good);
    if (good && !are_slabs_same (s, t) && GUARD (slabs)) {
      why = UNFIT_OTHERS;
      good = restore_slabs (s, t);
    }
  }
  if (ran && (!good || !digest_others (s, t, &others) || (others != t->others && GUARD (others))))
    again_end_program (s, repeat_name (a->launch), "it writes what its parameters do not name");
  s->block->seen.tested_ops++;
  trial_free (t);
  return good ? why : UNFIT_SMALL;
}
