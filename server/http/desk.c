/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/http/desk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/patience.h"

#define SECOND ((int64_t)1000000000)
enum { ANSWERING = 2, MOST_WAITERS = 256, MOST_STREAM_BYTES = 1 << 20, ALIVE_S = 15, LOOK_S = 3 };

struct desk {
  service *service;
  desk_ready *ready;
  void *context;
  pthread_t answering[ANSWERING], watching;
  pthread_mutex_t lock; /* guards all that follows */
  pthread_cond_t work, change;
  exchange *first, *last;      /* to be answered */
  exchange *waiting, *streams; /* lists without order */
  int n_waiting, n_streams, answering_now;
  int64_t changes;                     /* changes that were told */
  bool changed, fresh, draining, stop; /* fresh: a stream has begun */
};

/* ---- the queue ---- */

static void append (desk *d, exchange *e) {
  e->next = NULL;
  if (d->last)
    d->last->next = e;
  else
    d->first = e;
  d->last = e;
  pthread_cond_signal (&d->work);
}

bool desk_put (desk *d, exchange *e, void (*sleep) (exchange *e)) {
  assert (d && e && sleep);
  pthread_mutex_lock (&d->lock);
  bool open = !d->draining;
  if (open) {
    sleep (e);
    append (d, e);
  }
  pthread_mutex_unlock (&d->lock);
  return open;
}

/* With several owners, each may have as many as are left, as of the queue of jobs. */
static bool has_room (const desk *d, const exchange *asks) {
  int own = 0, left = MOST_WAITERS - d->n_waiting - d->n_streams;
  for (const exchange *e = d->streams; d->service->tokens && e; e = e->next)
    own += strcmp (e->request.owner, asks->request.owner) == 0;
  for (const exchange *e = d->waiting; d->service->tokens && e; e = e->next)
    own += strcmp (e->request.owner, asks->request.owner) == 0;
  return left > own && !d->draining;
}

/* The reply waits for a job: the exchange is kept aside, or answered at once where it must. What
   changed while the store was read may be missing in it, so then it is asked again. */
static bool put_aside (desk *d, exchange *e, int64_t changes) {
  pthread_mutex_lock (&d->lock);
  bool room = has_room (d, e);
  if (room) {
    e->next = d->waiting;
    d->waiting = e;
    d->n_waiting++;
    d->changed |= changes != d->changes;
    pthread_cond_signal (&d->change);
  } else {
    e->request.last = true;
    append (d, e);
  }
  pthread_mutex_unlock (&d->lock);
  return true;
}

static void answer (desk *d, exchange *e, int64_t changes) {
  reply_free (&e->reply);
  routes_answer (d->service, e->route, &e->request, &e->reply);
  if (e->reply.wait && put_aside (d, e, changes))
    return;
  e->handled = true;
  d->ready (d->context, e);
}

static void *answer_all (void *context) {
  desk *d = context;
  pthread_mutex_lock (&d->lock);
  for (;;) {
    while (!d->first && !d->stop)
      pthread_cond_wait (&d->work, &d->lock);
    if (!d->first)
      break;
    exchange *e = d->first;
    d->first = e->next;
    d->last = d->first ? d->last : NULL;
    d->answering_now++;
    int64_t changes = d->changes;
    pthread_mutex_unlock (&d->lock);
    answer (d, e, changes);
    pthread_mutex_lock (&d->lock);
    d->answering_now--;
    pthread_cond_broadcast (&d->change);
  }
  pthread_mutex_unlock (&d->lock);
  return NULL;
}

/* ---- those who wait ---- */

/* All are asked again after a change; one whose time is over for the last time. */
static void ask_again (desk *d, bool all) {
  exchange **at = &d->waiting;
  int64_t now = monotonic_ns ();
  while (*at) {
    exchange *e = *at;
    bool over = now >= e->request.wait_until_ns || d->draining;
    if (!over && !all) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    d->n_waiting--;
    e->request.last = over;
    append (d, e);
  }
}

/* ---- streams ---- */

bool desk_stream (desk *d, exchange *e) {
  pthread_mutex_lock (&d->lock);
  bool room = has_room (d, e);
  if (room) {
    e->after = e->reply.stream_after;
    e->told_ns = monotonic_ns ();
    e->next = d->streams;
    d->streams = e;
    d->n_streams++;
    e->more = d->fresh = true; /* it alone is looked at */
    pthread_cond_signal (&d->change);
  }
  pthread_mutex_unlock (&d->lock);
  return room;
}

int64_t desk_read (desk *d, exchange *e, char *to, int64_t most, void (*sleep) (exchange *e)) {
  assert (d && e && to && most > 0);
  pthread_mutex_lock (&d->lock);
  int64_t n = e->text.size - e->text_at;
  n = n < most ? n : most;
  if (n > 0) {
    memcpy (to, e->text.data + e->text_at, (size_t)n);
    e->text_at += n;
    if (e->text_at == e->text.size)
      e->text.size = e->text_at = 0;
  } else if (e->last)
    n = -1;
  else {
    e->waiting = true;
    sleep (e);
  }
  pthread_mutex_unlock (&d->lock);
  return n;
}

void desk_forget (desk *d, exchange *e) {
  pthread_mutex_lock (&d->lock);
  for (exchange **at = &d->streams; *at; at = &(*at)->next)
    if (*at == e) {
      *at = e->next;
      d->n_streams--;
      break;
    }
  pthread_cond_broadcast (&d->change);
  pthread_mutex_unlock (&d->lock);
}

/* New events of one stream; called with the lock, since a stream may end at any moment. A reader
   that does not read is let go. */
static void feed (desk *d, exchange *e, bool look) {
  static const char alive[] = ": alive\n\n", shutdown[] = "event: shutdown\ndata: {}\n\n";
  error err = { 0 };
  int64_t now = monotonic_ns (), before = e->text.size, from = e->after;
  if (e->last)
    return;
  look |= e->more && !before;
  if (look && !routes_events (d->service, e->reply.stream, e->request.owner, &e->after, &e->text,
                              &e->last, &err))
    e->last = true;
  if (look)
    e->more = e->after != from;
  if (d->draining && !e->last) {
    e->last = true;
    if (!bytes_append (&e->text, shutdown, sizeof shutdown - 1, &err))
      e->last = true;
  }
  if (e->text.size == before && now - e->told_ns > ALIVE_S * SECOND &&
      !bytes_append (&e->text, alive, sizeof alive - 1, &err))
    e->last = true;
  if (e->text.size > MOST_STREAM_BYTES)
    e->last = true;
  if (e->text.size != before)
    e->told_ns = now;
  if (e->waiting && (e->text.size != before || e->last)) {
    e->waiting = false;
    d->ready (d->context, e);
  }
}

/* Until the next waiter's time is over, at most a quarter of a second, or until something changes.
 */
static void nap (desk *d) {
  int64_t ns = SECOND / 4, now = monotonic_ns ();
  for (const exchange *e = d->waiting; e; e = e->next)
    ns = min_of (ns, e->request.wait_until_ns - now);
  if (d->changed || d->fresh || ns <= 0)
    return;
  patience_wait (&d->change, &d->lock, ns);
}

static void end_stream (desk *d, exchange *e) {
  e->last = true;
  if (e->waiting)
    d->ready (d->context, e);
  e->waiting = false;
}

/* True: another file of tokens is in force, and some streams may be nobody's any more. */
static bool follow_tokens (service *s) {
  error err = { 0 };
  bool read = s->tokens && tokens_follow (s->tokens, &err);
  if (err.code)
    service_log (s, "error", err.text, NULL);
  return read;
}

static void *watch (void *context) {
  desk *d = context;
  int64_t looked_ns = 0;
  pthread_mutex_lock (&d->lock);
  while (!d->stop) {
    nap (d);
    /* News of another replica may be lost with a connection. */
    bool late =
        store_is_shared (d->service->store) && monotonic_ns () - looked_ns > LOOK_S * SECOND;
    bool all = d->changed || late, revoked = follow_tokens (d->service);
    looked_ns = all ? monotonic_ns () : looked_ns;
    d->changed = d->fresh = false;
    atomic_store (&d->service->metrics[METRIC_http_suspended], d->n_waiting + d->n_streams);
    ask_again (d, all);
    for (exchange *e = d->streams; e; e = e->next) {
      if (revoked && !tokens_know (d->service->tokens, e->request.token))
        end_stream (d, e);
      feed (d, e, all);
    }
  }
  pthread_mutex_unlock (&d->lock);
  return NULL;
}

static void on_change (void *context) {
  desk *d = context;
  pthread_mutex_lock (&d->lock);
  d->changed = true;
  d->changes++;
  pthread_cond_broadcast (&d->change);
  pthread_mutex_unlock (&d->lock);
}

/* ---- life ---- */

desk *desk_start (service *s, desk_ready *ready, void *context, error *err) {
  assert (s && ready);
  desk *d = calloc (1, sizeof *d);
  if (!d) {
    error_memory (err);
    return NULL;
  }
  d->service = s;
  d->ready = ready;
  d->context = context;
  pthread_mutex_init (&d->lock, NULL);
  pthread_cond_init (&d->work, NULL);
  patience_init (&d->change);
  bool ok = pthread_create (&d->watching, NULL, watch, d) == 0;
  for (int i = 0; ok && i < ANSWERING; i++)
    ok = pthread_create (&d->answering[i], NULL, answer_all, d) == 0;
  if (!ok) {
    error_set (err, ERR_internal, "no threads for requests");
    return NULL; /* threads may run that use it: it is left, the program ends */
  }
  s->changed_context = d;
  s->changed = on_change;
  return d;
}

void desk_drain (desk *d) {
  int64_t until = monotonic_ns () + 5 * SECOND;
  pthread_mutex_lock (&d->lock);
  d->draining = d->changed = true;
  pthread_cond_broadcast (&d->change);
  while (d->first || d->n_waiting || d->answering_now || (d->n_streams && monotonic_ns () < until))
    patience_wait (&d->change, &d->lock, SECOND / 20);
  pthread_mutex_unlock (&d->lock);
}

void desk_stop (desk *d) {
  d->service->changed = NULL;
  pthread_mutex_lock (&d->lock);
  d->stop = true;
  pthread_cond_broadcast (&d->work);
  pthread_cond_broadcast (&d->change);
  pthread_mutex_unlock (&d->lock);
  for (int i = 0; i < ANSWERING; i++)
    pthread_join (d->answering[i], NULL);
  pthread_join (d->watching, NULL);
  pthread_mutex_destroy (&d->lock);
  pthread_cond_destroy (&d->work);
  pthread_cond_destroy (&d->change);
  free (d);
}
