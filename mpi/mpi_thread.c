/* SPDX-License-Identifier: MIT */
/*
** mpi_thread.c - the lock around MPI, and a thread that moves what is under
** way: MPI moves messages only when it is called, and the program may compute
** for long between the start of an operation and the wait for it.
*/
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "mpi/mpi_transport.h"

enum { PAUSE = 20 }; /* microseconds between two calls of MPI */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t driver;
static int running, stopping, works;

void tp_lock(void) {
  pthread_mutex_lock(&lock);
}

void tp_unlock(void) {
  pthread_mutex_unlock(&lock);
}

/* Waits until a work is under way; returns 0 at the end. */
static int wait_for_work(void) {
  int go;
  pthread_mutex_lock(&gate);
  while (works == 0 && !stopping) pthread_cond_wait(&changed, &gate);
  go = !stopping;
  pthread_mutex_unlock(&gate);
  return go;
}

static void *drive(void *unused) {
  (void)unused;
  while (wait_for_work()) {
    int there;
    tp_lock();
    MPI_Iprobe(MPI_ANY_SOURCE, NOTE_LATE, tp_transport.world->control, &there,
               MPI_STATUS_IGNORE);
    tp_unlock();
    usleep(PAUSE);
  }
  return NULL;
}

void tp_count_async(int change) {
  if (!running) return;
  pthread_mutex_lock(&gate);
  works += change;
  if (works == 1 && change > 0) pthread_cond_signal(&changed);
  pthread_mutex_unlock(&gate);
}

static void start_thread(void) {
  sigset_t all, before;
  stopping = works = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  running = pthread_create(&driver, NULL, drive, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_thread(void) {
  pthread_mutex_lock(&gate);
  stopping = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&gate);
  pthread_join(driver, NULL);
  running = 0;
}

void tp_background(int on) {
  if (on && !running) start_thread();
  else if (!on && running) stop_thread();
}
