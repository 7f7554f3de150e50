/* SPDX-License-Identifier: MIT */
/*
** mpi_wait.c - waiting for other ranks.  A wait polls, so that Ctrl-C, the
** failure of another rank and a limit of time can end it; a call of MPI that
** blocks can answer none of them.
**
** Two kinds of notes pass between ranks meanwhile.  A rank that fails, or whose
** program ends, tells all others on the communicator `tp_faults', never
** renewed.  Ranks that wait for long tell the others of their team which
** operation they wait in; the lowest of them says who is missing.
*/
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/mpi_transport.h"

enum {
  EAGER = 64,        /* polls before others get the processor */
  SPINS = 16,        /* polls between two looks at the clock */
  TEAM_OF_NOTES = 64 /* larger teams send late notes to ranks 0, 1 */
};
#define LOOK 2e-3      /* s between two looks at the notes */
#define LONG 0.5       /* s after which it sleeps longer */
#define GRACE 1.0      /* s that late notes of others may take */
#define LEFT_GRACE 1.0 /* s that what an ended rank has begun may take */

MPI_Comm tp_faults;
static char *ended; /* by rank of the world: did its program end? */
static int nended;
static double heard_at; /* when the last of them was heard of */

double tp_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int tp_open_notes(void) {
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &tp_faults));
  MPI(MPI_Comm_set_errhandler(tp_faults, MPI_ERRORS_RETURN));
  ended = calloc((size_t)tp_transport.size, 1);
  return ended ? NC_OK : tp_core->fail(NC_ENOMEM, "out of memory");
}

/*
** Failures, and the ends of programs
*/
static void tell_all(const char *note, int n, int tag) {
  tp_lock();
  for (int i = 0; i < tp_transport.size; i++) {
    MPI_Request r;
    if (i == tp_transport.rank) continue;
    MPI_Isend(note, n, MPI_CHAR, i, tag, tp_faults, &r);
    MPI_Request_free(&r);
  }
  tp_unlock();
}

void tp_tell(const char *text) {
  static char note[NOTE_TEXT];
  snprintf(note, sizeof note, "%s", text);
  tell_all(note, sizeof note, NOTE_FAILED);
}

void tp_tell_end(void) {
  tell_all("", 0, NOTE_ENDED);
}

int tp_told(char text[NOTE_TEXT], int *rank) {
  int there = 0;
  MPI_Status s;
  tp_lock();
  MPI_Iprobe(MPI_ANY_SOURCE, NOTE_FAILED, tp_faults, &there, &s);
  if (there) {
    *rank = s.MPI_SOURCE;
    MPI_Recv(text, NOTE_TEXT, MPI_CHAR, s.MPI_SOURCE, NOTE_FAILED, tp_faults,
             &s);
  }
  tp_unlock();
  return there;
}

int tp_hear_ended(void) {
  static int last = -1;
  int there = 1;
  tp_lock();
  while (there) {
    MPI_Status s;
    MPI_Iprobe(MPI_ANY_SOURCE, NOTE_ENDED, tp_faults, &there, &s);
    if (!there) break;
    last = s.MPI_SOURCE;
    MPI_Recv(NULL, 0, MPI_CHAR, last, NOTE_ENDED, tp_faults, &s);
    heard_at = tp_now();
    nended += !ended[last];
    ended[last] = 1;
  }
  tp_unlock();
  return last;
}

static const char *called(char text[80], const Wait *w) {
  if (w->number == 0) return w->name;
  snprintf(text, 80, "%s #%lld", w->name, (long long)w->number);
  return text;
}

static int peer_failed(const Wait *w, int rank, const char *text) {
  char name[80];
  tp_core->fail(NC_EPEER, "rank %d (%s) failed while %s waited for it: %s",
                rank, tp_transport.host(rank), called(name, w), text);
  tp_core->error_peer(rank, tp_transport.host(rank));
  return NC_EPEER;
}

static int peer_ended(const Wait *w, int rank) {
  char name[80];
  tp_core->fail(NC_EPEER, "rank %d (%s) has ended, and %s waits for it", rank,
                tp_transport.host(rank), called(name, w));
  tp_core->error_peer(rank, tp_transport.host(rank));
  return NC_EPEER;
}

/* The rank of the world of a member that is waited for and has ended; -1. */
static int find_ended(const Wait *w) {
  const Team *t = w->team;
  for (int i = 0; nended > 0 && i < t->size; i++)
    if (ended[t->world[i]] && i != t->rank && (w->peer < 0 || w->peer == i))
      return t->world[i];
  return -1;
}

/* Reads the notes about other ranks. */
static int look_for_notes(const Wait *w, double waited) {
  char text[NOTE_TEXT];
  int rank;
  if (!w->team->deaf && tp_told(text, &rank)) return peer_failed(w, rank, text);
  tp_hear_ended();
  if (waited > LEFT_GRACE && tp_now() - heard_at > LEFT_GRACE &&
      (rank = find_ended(w)) >= 0)
    return peer_ended(w, rank);
  return NC_OK;
}

/*
** Who is late
*/
typedef struct Late {
  double sent; /* when the others were told; 0: not yet */
  int warned;
  char *heard; /* by rank of the team: it waits, too */
} Late;

static void send_late(const Wait *w, Late *l) {
  const Team *t = w->team;
  const int n = t->size <= TEAM_OF_NOTES ? t->size : 2;
  static int64_t number;
  number = w->number;
  l->sent = tp_now();
  l->heard = calloc((size_t)t->size, 1);
  if (w->number == 0 || t->left) return; /* send, recv: the peer is known */
  tp_lock();
  for (int i = 0; i < n; i++) {
    MPI_Request r;
    if (i == t->rank) continue;
    MPI_Isend(&number, 1, MPI_INT64_T, i, NOTE_LATE, t->control, &r);
    MPI_Request_free(&r);
  }
  tp_unlock();
}

static void hear_late(const Wait *w, Late *l) {
  Team *t = w->team;
  int there = 1;
  tp_lock();
  while (there) {
    MPI_Status s;
    int64_t number = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, NOTE_LATE, t->control, &there, &s);
    if (!there) break;
    MPI_Recv(&number, 1, MPI_INT64_T, s.MPI_SOURCE, NOTE_LATE, t->control, &s);
    if (l->heard && number >= w->number) l->heard[s.MPI_SOURCE] = 1;
  }
  tp_unlock();
}

/* text = "rank 2 (node03)", "ranks 2, 3": who has not been heard of; *one = the
   rank of the world if it is one, else -1. */
static void name_late(const Wait *w, const Late *l, char text[160], int *one) {
  const Team *t = w->team;
  size_t at = 0;
  int n = 0;
  *one = -1;
  if (w->peer >= 0) n = 1, *one = t->world[w->peer];
  else if (w->number > 0 && l->heard &&
           (t->size <= TEAM_OF_NOTES || t->rank < 2))
    for (int i = 0; i < t->size; i++)
      if (i != t->rank && !l->heard[i]) n++, *one = t->world[i];
  if (n == 1)
    snprintf(text, 160, "rank %d (%s)", *one, tp_transport.host(*one));
  else *one = -1;
  if (n == 0) snprintf(text, 160, "the other ranks");
  if (n < 2) return;
  at = (size_t)snprintf(text, 160, "ranks");
  for (int i = 0, k = 0; i < t->size && at < 130; i++)
    if (i != t->rank && !l->heard[i])
      at += (size_t)snprintf(text + at, 160 - at, "%s %d", k++ ? "," : "",
                             t->world[i]);
  if (at >= 130) snprintf(text + at, 160 - at, ", ...");
}

static void say_late(const Wait *w, Late *l) {
  char name[80], who[160];
  int one;
  l->warned = 1;
  for (int i = 0; l->heard && i < w->team->rank; i++)
    if (l->heard[i]) return; /* that one says it */
  name_late(w, l, who, &one);
  fprintf(stderr, "(%s waits since %g s for %s)\n", called(name, w),
          tp_settings.warn, who);
}

static int no_answer(const Wait *w, const Late *l) {
  char name[80], who[160];
  int one;
  name_late(w, l, who, &one);
  tp_core->fail(NC_EPEER, "%s: no answer from %s in %g s", called(name, w), who,
                w->seconds);
  if (one >= 0) tp_core->error_peer(one, tp_transport.host(one));
  return NC_EPEER;
}

/*
** The wait
*/
static int trouble(const Wait *w, Late *l, double begin) {
  const double t = tp_now(), waited = t - begin;
  TRY(look_for_notes(w, waited));
  if (w->team->deaf) return NC_OK;
  if (l->sent == 0 && ((tp_settings.warn > 0 && waited > tp_settings.warn) ||
                       (w->seconds > 0 && waited > w->seconds)))
    send_late(w, l);
  if (l->sent == 0 || t - l->sent < GRACE) return NC_OK;
  if (w->number > 0 && !w->team->left) hear_late(w, l);
  if (w->seconds > 0 && waited > w->seconds) return no_answer(w, l);
  if (!l->warned && tp_settings.warn > 0 && waited > tp_settings.warn)
    say_late(w, l);
  return NC_OK;
}

static int interrupted(const Wait *w) {
  char name[80];
  return tp_core->fail(NC_EINTR, "interrupted: %s was waiting for other ranks",
                       called(name, w));
}

static int poll_requests(MPI_Request *req, int n, MPI_Status *status,
                         int *done) {
  int r;
  tp_lock();
  if (n == 1) r = MPI_Test(req, done, status ? status : MPI_STATUS_IGNORE);
  else r = MPI_Testall(n, req, done, status ? status : MPI_STATUSES_IGNORE);
  tp_unlock();
  return r;
}

/* The code of a failure, which MPI_Testall gives in the statuses. */
static int failure_code(int r, int n, const MPI_Status *status) {
  int class;
  MPI_Error_class(r, &class);
  if (class != MPI_ERR_IN_STATUS || status == NULL) return r;
  for (int i = 0; i < n; i++)
    if (status[i].MPI_ERROR != MPI_SUCCESS &&
        status[i].MPI_ERROR != MPI_ERR_PENDING)
      return status[i].MPI_ERROR;
  return r;
}

static int transfer_failed(const Wait *w, int code) {
  int class;
  MPI_Error_class(code, &class);
  if (class == MPI_ERR_TRUNCATE)
    return tp_core->fail(NC_EVALUE,
                         "another rank sent more elements than fit here");
  return tp_failed(w->name, code);
}

/* What has taken long already may take a little longer. */
static void pause_after(double waited) {
  if (waited < tp_settings.spin) sched_yield();
  else usleep(waited < LONG ? 50 : 1000);
}

static int wait_long(MPI_Request *req, int n, MPI_Status *status,
                     const Wait *w) {
  const double begin = tp_now();
  double look = LOOK, waited = 0;
  Late late = { 0, 0, NULL };
  int done = 0, r = NC_OK, m;
  for (int spin = 0; r == NC_OK; spin++) {
    m = poll_requests(req, n, status, &done);
    if (m != MPI_SUCCESS) r = transfer_failed(w, failure_code(m, n, status));
    else if (done) break;
    else if (*tp_core->interrupted && !w->team->deaf) r = interrupted(w);
    if (spin % SPINS == 0 || waited > tp_settings.spin)
      waited = tp_now() - begin;
    if (r == NC_OK && waited > look) {
      look = waited + LOOK;
      r = trouble(w, &late, begin);
    }
    if (r == NC_OK) tp_core->idle();
    if (r == NC_OK) pause_after(waited);
  }
  free(late.heard);
  return r;
}

int tp_wait(MPI_Request *req, int n, MPI_Status *status, const Wait *w) {
  int done = 0, m = MPI_SUCCESS, r;
  for (int spin = 0; spin < EAGER && m == MPI_SUCCESS && !done; spin++)
    m = poll_requests(req, n, status, &done);
  if (m != MPI_SUCCESS) /* said once: after that the request is gone */
    r = transfer_failed(w, failure_code(m, n, status));
  else if (done) return NC_OK;
  else r = wait_long(req, n, status, w);
  if (r != NC_OK && w->number > 0) w->team->broken = 1;
  return r;
}

int tp_watch(Team *t, const Coll *c, double waited) {
  static Late late;
  static const Team *of;
  static int64_t number;
  const Wait w = { t, tp_names[c->kind], c->number, -1, tp_settings.timeout };
  int r;
  if (of != t || number != c->number) {
    free(late.heard);
    late = (Late){ 0, 0, NULL };
    of = t;
    number = c->number;
  }
  r = trouble(&w, &late, tp_now() - waited);
  if (r != NC_OK) t->broken = 1;
  return r;
}
