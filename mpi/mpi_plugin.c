/* SPDX-License-Identifier: MIT */
/*
** mpi_plugin.c - the entry of the transport over MPI, its teams, and its end.
*/
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpi/mpi_transport.h"

enum { HOST = 64 }; /* bytes of the name of a host */

const TransportCore *tp_core;
TransportSettings tp_settings;
static char (*hosts)[HOST]; /* by rank of the world */
static int serialized;      /* may a second thread call MPI? */
static int left;

#define X(name) #name,
const char *const tp_names[] = { COLLECTIVES(X) };
const char *const tp_folds[] = { COLL_FOLDS(X) };
#undef X

int tp_failed(const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int n;
  MPI_Error_string(code, text, &n);
  return tp_core->fail(NC_EDEVICE, "%s: %s", what, text);
}

/*
** Teams
*/
static int set_world_ranks(Team *t) {
  MPI_Group all, mine;
  int *own = malloc(sizeof *own * (size_t)t->size);
  t->world = malloc(sizeof *t->world * (size_t)t->size);
  if (own == NULL || t->world == NULL)
    return tp_core->fail(NC_ENOMEM, "out of memory");
  for (int i = 0; i < t->size; i++) own[i] = i;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
  MPI(MPI_Comm_group(t->data, &mine));
  MPI(MPI_Group_translate_ranks(mine, t->size, own, all, t->world));
  MPI(MPI_Group_free(&all));
  MPI(MPI_Group_free(&mine));
  free(own);
  return NC_OK;
}

static int open_team(Team **out, MPI_Comm of) {
  Team *t = *out = calloc(1, sizeof *t);
  if (t == NULL) return tp_core->fail(NC_ENOMEM, "out of memory");
  MPI(MPI_Comm_dup(of, &t->data));
  MPI(MPI_Comm_dup(of, &t->control));
  MPI(MPI_Comm_set_errhandler(t->data, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_set_errhandler(t->control, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_rank(t->data, &t->rank));
  MPI(MPI_Comm_size(t->data, &t->size));
  return set_world_ranks(t);
}

static int split(Team **out, Team *of, int color, int key) {
  MPI_Comm k;
  int r;
  *out = NULL;
  TRY(tp_meet_to_split(of));
  MPI(MPI_Comm_split(of->data, color < 0 ? MPI_UNDEFINED : color, key, &k));
  if (k == MPI_COMM_NULL) return NC_OK;
  r = open_team(out, k);
  MPI_Comm_free(&k);
  return r;
}

void tp_free_left(Team *t) {
  if (!t->left || t->works > 0) return;
  if (!t->broken && !left) {
    tp_lock();
    MPI_Comm_free(&t->data);
    MPI_Comm_free(&t->control);
    tp_unlock();
  }
  free(t->world);
  free(t);
}

static void freeteam(Team *t) {
  t->left = 1;
  tp_free_left(t);
}

/* The team of the session was made of the world, where what the user runs now
   is number 1. */
static void deafen(Team *t) {
  t->deaf = 1;
  tp_transport.world->number = 0;
}

static void place(const Team *t, int *rank, int *size) {
  *rank = t->rank;
  *size = t->size;
}

static int worldrank(const Team *t, int rank) {
  return t->world[rank];
}

static const char *host_of(int rank) {
  return hosts[rank];
}

static int broken(const Team *t) {
  return t->broken;
}

static void lose(Team *t) {
  t->broken = 1;
}

/*
** Meetings of all processes, outside of teams
*/

static MPI_Request met_to_renew = MPI_REQUEST_NULL,
                   met_at_end = MPI_REQUEST_NULL;

/* Waits until all processes have called it; polls, as Ctrl-C may end it, and
   the next call goes on then.  At the end of the program a note of a failure
   ends it; else that is dropped, and the end of a program ends it.  The two do
   not meet each other: who believed that all had ended would finalize MPI
   while another aborts, and Open MPI's mpirun may hang then. */
static int meet(int at_end) {
  MPI_Request *req = at_end ? &met_at_end : &met_to_renew;
  char text[NOTE_TEXT];
  int done = 0, rank;
  if (*req == MPI_REQUEST_NULL)
    MPI(MPI_Ibarrier(at_end ? tp_faults : MPI_COMM_WORLD, req));
  while (!done) {
    MPI(MPI_Test(req, &done, MPI_STATUS_IGNORE));
    while (tp_told(text, &rank))
      if (at_end)
        return tp_core->fail(NC_EPEER, "rank %d failed: %s", rank, text);
    rank = tp_hear_ended();
    if (!done && !at_end && rank >= 0)
      return tp_core->fail(NC_EPEER, "rank %d (%s) has ended", rank,
                           host_of(rank));
    if (*tp_core->interrupted)
      return tp_core->fail(NC_EINTR, "interrupted: waiting for other ranks");
    tp_core->idle();
    if (!done) usleep(100);
  }
  return NC_OK;
}

/* What was under way in the old world stays there.  The first meeting is of
   ranks that have all given up; so after it no more notes are sent. */
static int renew(Team **out) {
  static int met; /* of the two meetings; one was interrupted */
  int broke;
  Team *old = *out = tp_transport.world;
  for (; met < 2; met++) TRY(meet(0));
  met = 0;
  MPI(MPI_Allreduce(&old->broken, &broke, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (!broke) return NC_OK;
  old->broken = 1; /* works in it say so; it stays for them */
  TRY(open_team(out, MPI_COMM_WORLD));
  tp_transport.world = *out;
  return NC_OK;
}

/*
** The end
*/
/* What a pipe holds that nobody has read yet. */
static int unread(int fd) {
  struct stat s;
  int n = 0;
  if (fstat(fd, &s) != 0 || !S_ISFIFO(s.st_mode)) return 0;
  return ioctl(fd, FIONREAD, &n) == 0 ? n : 0;
}

/* Ends the job. mpirun may drop what it has not read by then: it gets a fifth
   of a second to read what was printed. */
static void abort_job(int status) {
  const struct timespec moment = { .tv_nsec = 1000000 };
  fflush(NULL);
  for (int i = 0; i < 200; i++) {
    if (unread(STDOUT_FILENO) + unread(STDERR_FILENO) == 0) break;
    nanosleep(&moment, NULL);
  }
  MPI_Abort(MPI_COMM_WORLD, status);
}

static void leave(int status) {
  left = 1;
  tp_background(0);
  fflush(NULL);
  if (status != 0) abort_job(status);
  tp_tell_end();
  if (meet(1) != NC_OK) abort_job(1);
  if (tp_transport.world->broken || met_to_renew != MPI_REQUEST_NULL)
    _exit(0); /* MPI may still write to what it was given */
  tp_close_types();
  MPI_Finalize();
}

/* For a program that ends by exit() without leave(). */
static void abort_unless_left(void) {
  if (!left) abort_job(1);
}

/*
** The begin
*/

/* All ranks must compare, and cut messages, alike. */
static void agree(TransportSettings *s) {
  long long own[2] = { s->check, -s->chunk }, all[2];
  if (s->chunk < 1 || s->chunk > 1 << 28) own[1] = -(1 << 28);
  if (MPI_Allreduce(own, all, 2, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD) !=
      MPI_SUCCESS)
    return;
  s->check = (int)all[0];
  s->chunk = -all[1];
}

static void configure(const TransportSettings *s) {
  tp_settings = *s;
  agree(&tp_settings);
  tp_background(s->background && serialized && tp_transport.size > 1);
}

static int check_same_build(const TransportCore *c) {
  if (c->abi == NC_TRANSPORT_ABI && c->core == sizeof(TransportCore) &&
      c->transport == sizeof(Transport) && c->coll == sizeof(Coll) &&
      c->settings == sizeof(TransportSettings))
    return NC_OK;
  c->fail(NC_EDEVICE,
          "the MPI plug-in was built for another version than %s of the "
          "program",
          c->version);
  c->hint("nacre --build-mpi builds it again");
  return NC_EDEVICE;
}

static int open_mpi(void) {
  int already, level = MPI_THREAD_SERIALIZED;
  MPI(MPI_Initialized(&already));
  if (already) MPI(MPI_Query_thread(&level));
  else MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
  serialized = level >= MPI_THREAD_SERIALIZED;
  /* Open MPI raises there what happens inside non-blocking operations. */
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_rank(MPI_COMM_WORLD, &tp_transport.rank));
  MPI(MPI_Comm_size(MPI_COMM_WORLD, &tp_transport.size));
  return NC_OK;
}

static int find_places(void) {
  char own[HOST] = "";
  MPI_Comm local;
  gethostname(own, sizeof own - 1);
  hosts = calloc((size_t)tp_transport.size, sizeof *hosts);
  if (hosts == NULL) return tp_core->fail(NC_ENOMEM, "out of memory");
  MPI(MPI_Allgather(own, HOST, MPI_CHAR, hosts, HOST, MPI_CHAR,
                    MPI_COMM_WORLD));
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
                          tp_transport.rank, MPI_INFO_NULL, &local));
  MPI(MPI_Comm_rank(local, &tp_transport.localrank));
  MPI(MPI_Comm_size(local, &tp_transport.localsize));
  MPI(MPI_Comm_free(&local));
  return NC_OK;
}

/* The first words of the version, "Open MPI v4.1.4". */
static void name_library(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int n;
  MPI_Get_library_version(text, &n);
  text[strcspn(text, ",\n")] = '\0';
  for (char *p = text; *p; p++)
    if (*p == '\t') *p = ' ';
  snprintf(tp_transport.library, sizeof tp_transport.library, "%.127s", text);
}

Transport tp_transport = { .name = "mpi",
                           .configure = configure,
                           .host = host_of,
                           .split = split,
                           .freeteam = freeteam,
                           .deafen = deafen,
                           .place = place,
                           .worldrank = worldrank,
                           .broken = broken,
                           .announce = tp_announce,
                           .watch = tp_watch,
                           .lose = lose,
                           .start = tp_start,
                           .test = tp_test,
                           .wait = tp_waitwork,
                           .sender = tp_sender,
                           .freework = tp_freework,
                           .tell = tp_tell,
                           .renew = renew,
                           .leave = leave };

__attribute__((visibility("default"))) TransportEntry nacre_transport;

int nacre_transport(const TransportCore *core, const Transport **t) {
  *t = NULL;
  TRY(check_same_build(core));
  tp_core = core;
  TRY(open_mpi());
  atexit(abort_unless_left);
  TRY(find_places());
  name_library();
  TRY(tp_open_notes());
  TRY(tp_open_types());
  TRY(open_team(&tp_transport.world, MPI_COMM_WORLD));
  *t = &tp_transport;
  return NC_OK;
}
