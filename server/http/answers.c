/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/answers.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 512, MOST_BYTES = 16 << 20, FRESH_S = 3600 };

typedef struct kept {
  char *key; /* owner and path */
  struct MHD_Response *response;
  int64_t bytes, at_s;
} kept;

struct answers {
  pthread_rwlock_t lock; /* guards all */
  kept all[ANSWERS];
  int64_t bytes; /* of all */
  int hand;      /* the next to go, where they are too many bytes */
};

static void drop (answers *a, kept *k) {
  if (k->response)
    MHD_destroy_response (k->response);
  free (k->key);
  a->bytes -= k->bytes;
  *k = (kept){ 0 };
}

answers *answers_new (error *err) {
  answers *a = calloc (1, sizeof *a);
  if (!a)
    error_memory (err);
  else
    pthread_rwlock_init (&a->lock, NULL);
  return a;
}

void answers_free (answers *a) {
  answers_forget (a);
  pthread_rwlock_destroy (&a->lock);
  free (a);
}

static kept *place_of (answers *a, const char *key) {
  uint64_t h = 1469598103934665603u;
  for (; *key; key++)
    h = (h ^ (unsigned char)*key) * 1099511628211u;
  return &a->all[h % ANSWERS];
}

void answers_keep (answers *a, const char *key, struct MHD_Response *response, int64_t bytes,
                   int64_t now_s) {
  assert (a && response);
  char *copy = key && bytes <= MOST_BYTES ? strdup (key) : NULL;
  if (!copy) {
    MHD_destroy_response (response);
    return;
  }
  kept *k = place_of (a, copy);
  pthread_rwlock_wrlock (&a->lock);
  drop (a, k);
  for (; a->bytes + bytes > MOST_BYTES; a->hand = (a->hand + 1) % ANSWERS)
    drop (a, &a->all[a->hand]);
  *k = (kept){ copy, response, bytes, now_s };
  a->bytes += bytes;
  pthread_rwlock_unlock (&a->lock);
}

bool answers_queue (answers *a, const char *key, struct MHD_Connection *to, int64_t now_s,
                    int64_t *bytes, enum MHD_Result *result) {
  assert (key && now_s >= 0);
  kept *k = place_of (a, key);
  pthread_rwlock_rdlock (&a->lock);
  bool hit = k->key && strcmp (k->key, key) == 0 && now_s - k->at_s < FRESH_S;
  if (hit) {
    *result = MHD_queue_response (to, 200, k->response);
    *bytes = k->bytes;
  }
  pthread_rwlock_unlock (&a->lock);
  return hit;
}

void answers_forget (answers *a) {
  pthread_rwlock_wrlock (&a->lock);
  for (int i = 0; i < ANSWERS; i++)
    drop (a, &a->all[i]);
  pthread_rwlock_unlock (&a->lock);
}
