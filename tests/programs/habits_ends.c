/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes: children, signals, and ways to end. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/habits.h"

void habit_workers (habits *h) {
  for (int i = 0; i < h->g.steps; i++) {
    pid_t child = i % 4 == 1 ? fork () : -1;
    if (child == 0)
      exit (7); /* with all that is done at a program's end */
    habits_chain (h, 12, N, NULL);
    habits_say (h, i, NULL);
    int status = 0;
    if (child > 0 && (waitpid (child, &status, 0) != child || WEXITSTATUS (status) != 7))
      exit (6);
  }
}

void habit_leaves (habits *h) {
  habit_shapes (h);
  fflush (stdout);
  _exit (5);
}

static void end_here (int signal) {
  (void)signal;
  exit (6);
}

/* On the virtual clock the device's functions run in the thread that waits. */
static void interrupt (void *unused) {
  (void)unused;
  raise (SIGUSR1);
}

void habit_handled (habits *h) {
  habit_shapes (h);
  signal (SIGUSR1, end_here);
  h->g.launch_host_func (NULL, interrupt, NULL);
  gpu_must (&h->g, h->g.ctx_synchronize (), "cuCtxSynchronize");
}

static atomic_int interrupts;

static void count (int signal) {
  (void)signal;
  atomic_fetch_add (&interrupts, 1);
}

void habit_counts (habits *h) {
  signal (SIGINT, count);
  for (int i = 0; i < h->g.steps; i++) {
    int before = atomic_load (&interrupts);
    printf ("ready\n");
    fflush (stdout);
    while (atomic_load (&interrupts) == before)
      usleep (1000);
    for (int k = 0; k < 30; k++)
      usleep (1000);
  }
  printf ("came %d\n", atomic_load (&interrupts));
}

static atomic_int rounds;

static void *go_on (void *own) {
  habits *h = own;
  gpu_must (&h->g, h->g.ctx_set_current (h->g.context), "cuCtxSetCurrent");
  CUstream s = gpu_stream (&h->g);
  while (atomic_fetch_add (&rounds, 1) >= 0) {
    habits_chain (h, 6, N, s);
    gpu_must (&h->g, h->g.stream_synchronize (s), "cuStreamSynchronize");
  }
  return NULL;
}

void habit_busy (habits *h) {
  pthread_t thread;
  for (int i = 0; i < 4; i++)
    if (pthread_create (&thread, NULL, go_on, h) != 0)
      exit (5);
  while (atomic_load (&rounds) < h->g.steps)
    sched_yield ();
  exit (7);
}

void habit_aborts (habits *h) {
  habit_shapes (h);
  abort ();
}
