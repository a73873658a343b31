/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The watchdog: threads that answer are asked again and again, one that is silent is late, and one
   whose connection ends is asked on another. */
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/watchdog.h"
#include "tests/suite.h"

enum { THREADS = 3, MOMENT_MS = 5, PATIENCE = 20 };

static atomic_int opened, lates, answers, fds[THREADS];
static atomic_bool deaf;

static bool open_one (void *context, int fd) {
  (void)context;
  fds[fd % THREADS] = fd;
  opened++;
  return true;
}

static void on_answered (void *context) {
  (void)context;
  answers++;
  for (int i = 0; i < THREADS; i++) {
    char text[200];
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n";
    bool mute = deaf && i == 1;
    if (fds[i] && recv (fds[i], text, sizeof text, MSG_DONTWAIT) > 0 && !mute)
      ck_assert_int_gt (send (fds[i], reply, sizeof reply - 1, 0), 0);
  }
}

static void on_late (void *context) {
  (void)context;
  lates++;
}

static watchdog *begin (void) {
  error err = { 0 };
  watchdog_care care = { THREADS, MOMENT_MS, PATIENCE, open_one, on_answered, on_late, NULL };
  opened = lates = answers = 0;
  for (int i = 0; i < THREADS; i++)
    fds[i] = 0;
  watchdog *w = watchdog_start (&care, &err);
  ck_assert_ptr_nonnull (w);
  return w;
}

static void end (watchdog *w) {
  watchdog_stop (w);
  for (int i = 0; i < THREADS; i++)
    close (fds[i]);
}

static void pass (int moments) {
  for (int from = answers; answers < from + moments && !lates;)
    usleep (1000);
}

CLAIM (answers_are_no_news) {
  deaf = false;
  watchdog *w = begin ();
  pass (3 * PATIENCE);
  ck_assert_int_eq (lates, 0);
  ck_assert_int_eq (opened, THREADS); /* one for each */
  shutdown (fds[2], SHUT_RDWR);
  pass (3 * PATIENCE);
  ck_assert_int_eq (lates, 0);
  ck_assert_int_eq (opened, THREADS + 1);
  end (w);
}

CLAIM (one_that_is_silent_is_late) {
  deaf = true;
  watchdog *w = begin ();
  for (int i = 0; i < 10000 && !lates; i++)
    usleep (1000);
  ck_assert_int_eq (lates, 1);
  ck_assert_int_ge (answers, PATIENCE - 1);
  end (w);
}

int main (void) {
  return suite_run ("watchdog", 60);
}
