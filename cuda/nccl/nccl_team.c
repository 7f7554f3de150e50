/* SPDX-License-Identifier: MIT */
/*
** nccl_team.c - communicators of NCCL, what they have under way, and the host's
** waits for it (core/device_teams.h has the contracts).
**
** A kernel of NCCL waits on the device for those of the other ranks, for ever
** if one does not come.  So whoever waits for the device looks now and then
** (nc_watch_teams): after a failure the communicator is aborted, which ends its
** kernels, and the team cannot go on.
*/
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/nccl/nccl_team.h"
#include "cuda/runtime/probe.h"

#define LOOK 2000000                /* ns between two looks */
#define GRACE ((int64_t)1000000000) /* ns for the note of a rank that failed */
#define FAREWELL ((int64_t)10000000000) /* ns for the end of a communicator */

static DeviceTeam *teams;

static void nap(void) {
  const struct timespec t = { 0, 50000 };
  nanosleep(&t, NULL);
}

/*
** Failures
*/
void nc_abort_team(DeviceTeam *t) {
  Comm c = t->comm;
  if (c == NULL) return;
  nc_prune_team(t); /* what is done has not failed */
  t->comm = NULL;
  nc_nccl()->abort(c);
}

/* The transport's team is lost, too: the ranks are at different places. */
static void lose(DeviceTeam *t) {
  nc_abort_team(t);
  nc_hostside->lose(t->team);
}

int nc_fail_team(DeviceTeam *t, int code, int result) {
  nc_fail(code, "NCCL: %s", nc_nccl_text(t->comm, result));
  lose(t);
  return code;
}

static int fail_aborted(void) {
  return nc_fail(NC_EPEER, "this group was left in the middle of an operation "
                           "and cannot go on");
}

int nc_settle_team(DeviceTeam *t, int result) {
  const int64_t begin = nc_clock();
  while (result == NCCL_IN_PROGRESS) {
    const Coll c = { .kind = COLL_barrier };
    const int r =
        nc_wantsstop()
            ? nc_fail(NC_EINTR, "interrupted: NCCL was starting an operation")
            : nc_hostside->watch(t->team, t->last ? &t->last->c : &c,
                                 1e-9 * (double)(nc_clock() - begin));
    if (r != NC_OK) {
      lose(t);
      return r;
    }
    if (nc_nccl()->state(t->comm, &result) != NCCL_SUCCESS) break;
    if (result == NCCL_IN_PROGRESS) nap();
  }
  if (result == NCCL_SUCCESS) return NC_OK;
  return nc_fail_team(t, result == NCCL_REMOTE_ERROR ? NC_EPEER : NC_EDEVICE,
                      result);
}

/*
** Teams
*/
int nc_cuda_teamversion(void) {
  return nc_nccl()->number;
}

int nc_cuda_newteamid(char id[NC_TEAMID]) {
  UniqueId made;
  sigset_t before;
  int r;
  nc_holdsignals(&before); /* it starts a thread */
  r = nc_nccl()->newid(&made);
  nc_freesignals(&before);
  if (r != NCCL_SUCCESS)
    return nc_fail(NC_EDEVICE, "NCCL: %s", nc_nccl_text(NULL, r));
  memcpy(id, made.internal, NC_TEAMID);
  return NC_OK;
}

/* Members listen to the root that is theirs: at one root, thousands would come
   one after the other. */
int nc_cuda_teamids(int size) {
  const char *given = getenv("NACRE_NCCL_ROOTS");
  const int most = given && atoi(given) > 0 ? atoi(given) : 64;
  return nc_nccl()->initmany ? (size - 1) / most + 1 : 1;
}

static CommConfig usual_config(void) {
  return (CommConfig){ .size = sizeof(CommConfig),
                       .magic = CONFIG_MAGIC,
                       .version = NCCL_OLDEST,
                       .blocking = 0,
                       .cga = CONFIG_UNDEFINED,
                       .least = CONFIG_UNDEFINED,
                       .most = CONFIG_UNDEFINED,
                       .splitshare = CONFIG_UNDEFINED };
}

static int begin(DeviceTeam *t, const TeamPlace *p) {
  CommConfig config = usual_config();
  UniqueId *ids = malloc(sizeof *ids * (size_t)p->nids);
  sigset_t before;
  int r;
  if (ids == NULL) return nc_fail(NC_ENOMEM, "no memory for a group");
  memcpy(ids, p->ids, sizeof *ids * (size_t)p->nids);
  nc_activate(t->gpu);
  nc_holdsignals(&before);
  r = p->nids > 1 ? nc_nccl()->initmany(&t->comm, p->size, p->rank, p->nids,
                                        ids, &config)
                  : nc_nccl()->init(&t->comm, p->size, *ids, p->rank, &config);
  nc_freesignals(&before);
  free(ids);
  if (r == NCCL_SUCCESS || r == NCCL_IN_PROGRESS) return NC_OK;
  return nc_fail_team(t, NC_EDEVICE, r);
}

/* *out = a team that is not connected yet. */
static int add_team(DeviceTeam **out, const TeamPlace *p) {
  DeviceTeam *t = *out = calloc(1, sizeof *t);
  if (t == NULL) return nc_fail(NC_ENOMEM, "no memory for a group");
  t->gpu = &nc_gpu[p->device];
  t->team = p->team;
  t->rank = p->rank;
  t->size = p->size;
  t->next = teams;
  teams = t;
  /* above what computes: it waits for others, who wait for it */
  return nc_cuda_newstream(&t->stream, p->device, -1);
}

int nc_cuda_newteam(DeviceTeam **out, const TeamPlace *p) {
  TRY(add_team(out, p));
  return begin(*out, p);
}

/* What is under way in a team that is split would be a deadlock. */
int nc_cuda_splitteam(DeviceTeam **out, DeviceTeam *of, int color,
                      const TeamPlace *p) {
  CommConfig config = usual_config();
  Comm none = NULL;
  sigset_t before;
  int r;
  *out = NULL;
  if (nc_nccl()->split == NULL) return NC_OK;
  if (of->comm == NULL) return fail_aborted();
  TRY(nc_waitfor(of->gpu, of->stream->handle));
  if (color >= 0) TRY(add_team(out, p));
  nc_activate(of->gpu);
  nc_holdsignals(&before);
  r = nc_nccl()->split(of->comm, color < 0 ? NCCL_NO_COLOR : color, p->rank,
                       *out ? &(*out)->comm : &none, &config);
  nc_freesignals(&before);
  return nc_settle_team(of, r);
}

int nc_cuda_teamready(DeviceTeam *t, int *done) {
  int state = NCCL_SUCCESS, r;
  *done = 0;
  if (t->comm == NULL) return fail_aborted();
  nc_activate(t->gpu);
  r = nc_nccl()->state(t->comm, &state);
  if (r == NCCL_SUCCESS) r = state;
  if (r == NCCL_IN_PROGRESS) return NC_OK;
  *done = t->isready = 1;
  return r == NCCL_SUCCESS ? NC_OK : nc_fail_team(t, NC_EDEVICE, r);
}

/* Gives up what nobody refers to. */
static void free_unused(DeviceTeam *t) {
  DeviceTeam **p = &teams;
  if (!t->freed || t->works > 0) return;
  while (*p != t) p = &(*p)->next;
  *p = t->next;
  free(t);
}

/* Its operations have ended or will by themselves; NCCL closes connections. */
static void say_farewell(DeviceTeam *t) {
  const int64_t start = nc_clock();
  int state = nc_nccl()->finalize(t->comm);
  while (state == NCCL_IN_PROGRESS && nc_clock() - start < FAREWELL) {
    if (nc_nccl()->state(t->comm, &state) != NCCL_SUCCESS) break;
    if (state == NCCL_IN_PROGRESS) nap();
  }
  if (state != NCCL_SUCCESS) nc_abort_team(t);
  else nc_nccl()->destroy(t->comm);
  t->comm = NULL;
}

/* The oldest work is not under way any more. */
static void pop_work(DeviceTeam *t) {
  DeviceWork *w = t->first;
  t->first = w->next;
  if (t->first == NULL) t->last = NULL;
  nc_putevent(t->gpu, w->event, 0);
  w->passed = 1;
  w->failed = t->comm == NULL;
  if (w->freed) free(w);
}

void nc_cuda_freeteam(DeviceTeam *t, int failed) {
  nc_activate(t->gpu);
  if (!failed && t->comm && nc_waitfor(t->gpu, t->stream->handle) == NC_OK &&
      nc_prune_team(t) == NC_OK && t->comm)
    say_farewell(t);
  nc_abort_team(t);
  while (t->first) pop_work(t);
  nc_cuda_freestream(t->stream);
  t->stream = NULL;
  t->freed = 1;
  free_unused(t);
}

/*
** Operations
*/
int nc_prune_team(DeviceTeam *t) {
  int done = 1;
  nc_activate(t->gpu);
  while (t->first && done) {
    TRY(nc_queried(cudaEventQuery(t->first->event), &done));
    if (done) pop_work(t);
  }
  return NC_OK;
}

/* Keeps the blocks of the operands from being used again before the stream of
   the team has passed. */
static void record_uses(const DeviceTeam *t, const Coll *c) {
  Gpu *g = t->gpu;
  const int current = g->current;
  g->current = t->stream->index;
  nc_record_use(&g->device, c->in);
  nc_record_use(&g->device, c->out);
  g->current = current;
}

static int run(DeviceTeam *t, DeviceWork *w, const Coll *c) {
  Gpu *g = t->gpu;
  TRY(nc_order_streams(g, nc_current_stream(&g->device), g, t->stream->handle));
  record_uses(t, c);
  TRY(nc_call_nccl(t, c));
  return nc_record_event(g, &w->event, t->stream->handle);
}

int nc_cuda_startwork(DeviceWork **out, DeviceTeam *t, const Coll *c) {
  DeviceWork *w;
  int r;
  *out = NULL;
  if (t->comm == NULL) return fail_aborted();
  TRY(nc_prune_team(t));
  w = calloc(1, sizeof *w);
  if (w == NULL) return nc_fail(NC_ENOMEM, "no memory for an operation");
  w->team = t;
  w->c = *c;
  if ((r = run(t, w, c)) != NC_OK) {
    free(w);
    return r;
  }
  if (t->last) t->last->next = w;
  else t->first = w;
  t->last = w;
  t->works++;
  *out = w;
  return NC_OK;
}

int nc_cuda_querywork(DeviceWork *w, int *done) {
  TRY(w->passed ? NC_OK : nc_prune_team(w->team));
  *done = w->passed;
  return NC_OK;
}

int nc_cuda_afterwork(DeviceWork *w) {
  Gpu *g = w->team->gpu;
  if (w->failed || (w->team->comm == NULL && !w->passed)) return fail_aborted();
  if (w->passed) return NC_OK;
  return nc_cudastatus(
      cudaStreamWaitEvent(nc_current_stream(&g->device), w->event, 0));
}

int nc_cuda_waitwork(DeviceWork *w) {
  TRY(nc_cuda_afterwork(w));
  return w->passed ? NC_OK : nc_waitforevent(w->team->gpu, w->event);
}

void nc_cuda_freework(DeviceWork *w) {
  DeviceTeam *t = w->team;
  w->freed = 1;
  t->works--;
  if (w->passed) free(w);
  free_unused(t);
}

/*
** The host waits
*/

/* NCCL says that it cannot go on.  The rank that failed may still say why. */
static int look_at_state(DeviceTeam *t) {
  int state = NCCL_SUCCESS;
  if (nc_nccl()->state(t->comm, &state) != NCCL_SUCCESS ||
      state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS)
    return NC_OK;
  if (t->failed == 0) t->failed = nc_clock();
  if (nc_clock() - t->failed < GRACE) return NC_OK;
  return nc_fail_team(t, NC_EPEER, state);
}

/* How long the host has waited for the oldest operation: others before it may
   have taken most of the time. */
static int64_t waited_for_first(DeviceTeam *t, int64_t waited) {
  if (t->seen != t->first->c.number) {
    t->seen = t->first->c.number;
    t->since = nc_clock();
  }
  return nc_clock() - t->since < waited ? nc_clock() - t->since : waited;
}

static int watch(DeviceTeam *t, int64_t waited) {
  int r;
  TRY(nc_prune_team(t));
  if (t->first == NULL) return NC_OK;
  waited = waited_for_first(t, waited);
  r = nc_hostside->watch(t->team, &t->first->c, 1e-9 * (double)waited);
  if (r != NC_OK) {
    lose(t);
    return r;
  }
  return look_at_state(t);
}

int nc_watch_teams(const Gpu *g, int64_t waited) {
  static int64_t looked;
  if (teams == NULL || nc_clock() - looked < LOOK) return NC_OK;
  looked = nc_clock();
  for (DeviceTeam *t = teams; t; t = t->next)
    if (t->gpu == g && t->comm && t->isready) TRY(watch(t, waited));
  return NC_OK;
}

int nc_stop_teams(const Gpu *g) {
  int stopped = 0;
  for (DeviceTeam *t = teams; t; t = t->next) {
    if (t->gpu != g || t->comm == NULL || nc_prune_team(t) != NC_OK ||
        t->first == NULL)
      continue;
    lose(t);
    stopped = 1;
  }
  return stopped;
}

void nc_cuda_progress(void) {
#ifdef NC_EMULATED
  emu_progress();
#endif
}
