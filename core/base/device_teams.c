/* SPDX-License-Identifier: MIT */
/*
** device_teams.c - operations on tensors that lie on devices of several
** processes.  An accelerator that can (NCCL) carries the elements itself, if
** each member of the team has its own device; else they pass through the host
** (Transport.start).
**
** A device team belongs to a team of the transport and a device.  It is
** connected at the first operation there: the members tell each other over the
** transport what they have, so that all decide alike, and the names that some
** of them have made for it: each is where part of the members meet.
*/
#define _XOPEN_SOURCE 700 /* nanosleep */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/staged_collective.h"
#include "core/accelerator.h"

typedef struct Meeting {
  const Team *team;
  const Device *device;
  DeviceTeam *t; /* NULL: operands pass through the host */
  char why[160]; /* then */
  struct Meeting *next;
} Meeting;

/* What a member tells the others. */
typedef struct Member {
  char uuid[48];      /* of its device */
  char id[NC_TEAMID]; /* if it gives one of the names */
  int version;        /* of its library; 0: there is none */
} Member;

static Meeting *meetings;

static Meeting *find(const Team *t, const Device *d) {
  for (Meeting *m = meetings; m; m = m->next)
    if (m->team == t && m->device == d) return m;
  return NULL;
}

/*
** Deciding
*/

/* The libraries must be one, the devices different. */
static int explain(char why[160], const Member *all, int size) {
  for (int i = 0; i < size; i++)
    if (all[i].version == 0)
      return snprintf(why, 160, "rank %d of the group has no NCCL", i);
  for (int i = 0; i < size; i++) {
    if (all[i].version != all[0].version)
      return snprintf(why, 160,
                      "ranks 0 and %d have different versions of NCCL", i);
    for (int j = 0; j < i; j++)
      if (strcmp(all[i].uuid, all[j].uuid) == 0)
        return snprintf(why, 160, "ranks %d and %d use one GPU", j, i);
  }
  return 0;
}

/* The rank that makes the name i of n. */
static int namer(int i, int n, int size) {
  return (int)((int64_t)i * size / n);
}

static int describe_self(Member *m, const Device *d, int rank, int size) {
  const Accelerator *a = nc_open_accelerator();
  DeviceInfo info;
  int r = NC_OK;
  TRY(a->info(d->ordinal, &info));
  memcpy(m->uuid, info.uuid, sizeof m->uuid);
  m->version = a->teamversion();
  for (int i = 0, n = a->teamids(size); m->version && i < n && r == NC_OK; i++)
    if (namer(i, n, size) == rank) r = a->newteamid(m->id);
  return r;
}

/* all = what the members have told, which the caller frees.  If the wait fails,
   the transport may still write there. */
static int exchange(Member **all, const Coll *c, const Device *d) {
  const Transport *t = nc_open_transport();
  int rank, size;
  Work *w = NULL;
  Member *own;
  t->place(c->team, &rank, &size);
  own = *all = calloc((size_t)size + 1, sizeof **all);
  if (own == NULL) return nc_fail(NC_ENOMEM, "no memory for %d ranks", size);
  own += size;
  if (describe_self(own, d, rank, size) != NC_OK) own->version = 0;
  TRY(t->start(&w, &(Coll){ .kind = COLL_all_gather,
                            .type = DT_u8,
                            .n = sizeof *own,
                            .in = own,
                            .out = *all,
                            .team = c->team,
                            .number = c->number }));
  if (w == NULL) return NC_OK;
  TRY(t->wait(w, 0));
  t->freework(w);
  return NC_OK;
}

/*
** Connecting
*/
static int wait_until_ready(DeviceTeam *t, const Coll *c) {
  const struct timespec nap = { 0, 200000 };
  const int64_t begin = nc_now();
  int done = 0;
  for (;;) {
    TRY(nc_open_accelerator()->teamready(t, &done));
    if (done) return NC_OK;
    if (nc_interrupted)
      return nc_fail(NC_EINTR, "interrupted: the GPUs of the group were being "
                               "connected");
    TRY(nc_open_transport()->watch(c->team, c,
                                   1e-9 * (double)(nc_now() - begin)));
    nanosleep(&nap, NULL);
  }
}

/* Begins to connect the team of m. */
static int begin(Meeting *m, TeamPlace *p, const Member *all) {
  const Accelerator *a = nc_open_accelerator();
  char *ids;
  int r;
  p->nids = a->teamids(p->size);
  ids = malloc((size_t)p->nids * NC_TEAMID);
  if (ids == NULL) return nc_fail(NC_ENOMEM, "no memory for a group");
  for (int i = 0; i < p->nids; i++)
    memcpy(ids + (size_t)i * NC_TEAMID, all[namer(i, p->nids, p->size)].id,
           NC_TEAMID);
  p->ids = ids;
  r = a->newteam(&m->t, p);
  free(ids);
  return r;
}

static int connect(Meeting *m, const Coll *c, const Member *all) {
  const Accelerator *a = nc_open_accelerator();
  TeamPlace p = { .device = m->device->ordinal, .team = c->team };
  int r;
  nc_open_transport()->place(c->team, &p.rank, &p.size);
  if (explain(m->why, all, p.size)) return NC_OK;
  r = begin(m, &p, all);
  if (r == NC_OK) r = wait_until_ready(m->t, c);
  if (r == NC_OK) return NC_OK;
  if (m->t) a->freeteam(m->t, 1);
  m->t = NULL;
  nc_open_transport()->lose(c->team);
  return r;
}

static int meet(Meeting **out, const Coll *c, const Device *d) {
  Meeting *m = calloc(1, sizeof *m);
  Member *all;
  int r;
  if (m == NULL) return nc_fail(NC_ENOMEM, "no memory for a group");
  m->team = c->team;
  m->device = d;
  r = exchange(&all, c, d);
  if (r == NC_OK) {
    r = connect(m, c, all);
    free(all);
  }
  if (r != NC_OK) {
    free(m);
    return r;
  }
  m->next = meetings;
  *out = meetings = m;
  return NC_OK;
}

/* Connects the part of m's team that this process is in; a part of one rank has
   nothing to connect. */
static int split(const Meeting *m, Team *part, int color) {
  const Accelerator *a = nc_open_accelerator();
  TeamPlace p = { .device = m->device->ordinal, .team = part };
  const Coll c = { .kind = COLL_split, .team = part };
  Meeting *made = NULL;
  int r;
  if (part) nc_open_transport()->place(part, &p.rank, &p.size);
  if (p.size > 1 && (made = calloc(1, sizeof *made)) == NULL)
    return nc_fail(NC_ENOMEM, "no memory for a group");
  if (made == NULL) color = -1;
  else *made = (Meeting){ .team = part, .device = m->device };
  r = a->splitteam(made ? &made->t : &(DeviceTeam *){ NULL }, m->t, color, &p);
  if (r == NC_OK && made && made->t) r = wait_until_ready(made->t, &c);
  if (r == NC_OK && made && made->t) {
    made->next = meetings;
    meetings = made;
    return NC_OK;
  }
  if (made && made->t) a->freeteam(made->t, 1);
  free(made);
  return r;
}

int nc_split_device_teams(const Team *of, Team *part, int color) {
  for (const Meeting *m = meetings; m; m = m->next)
    if (m->team == of && m->t) TRY(split(m, part, color));
  return NC_OK;
}

/*
** Operations
*/

/* The operation of a team of one. */
static int copy_own(const Coll *c, const Device *d) {
  const int64_t bytes = c->n * nc_dtypesize(c->type);
  if (c->in == NULL || c->out == NULL || c->in == c->out) return NC_OK;
  return d->copy(d, c->out, c->in, bytes, d, 0);
}

int nc_start_on_device(DeviceWork **w, Coll *c, const Device *d, int *taken) {
  const Transport *t = nc_open_transport();
  Meeting *m = find(c->team, d);
  int rank, size;
  *w = NULL;
  *taken = 1;
  t->place(c->team, &rank, &size);
  if (size == 1) return copy_own(c, d);
  c->place = m ? PLACE_DEVICE : PLACE_NEW;
  TRY(t->announce(c));
  if (m == NULL) TRY(meet(&m, c, d));
  if (m->t == NULL || !nc_open_accelerator()->teamcan(c)) {
    *taken = nc_can_stage_in_parts(c);
    return *taken ? nc_stage_in_parts(c, d) : NC_OK;
  }
  if (c->n == 0) return NC_OK;
  return nc_open_accelerator()->startwork(w, m->t, c);
}

const char *nc_device_way(const Team *t, const Device *d) {
  const Meeting *m = find(t, d);
  if (m == NULL) return NULL;
  return m->t ? "nccl" : m->why;
}

/*
** The end
*/
static void free_meetings(int (*ends)(const Meeting *m, const Team *t),
                          const Team *t, int failed) {
  for (Meeting **p = &meetings; *p;) {
    Meeting *m = *p;
    if (!ends(m, t)) {
      p = &m->next;
      continue;
    }
    *p = m->next;
    if (m->t) nc_open_accelerator()->freeteam(m->t, failed);
    free(m);
  }
}

static int is_of(const Meeting *m, const Team *t) {
  return t == NULL || m->team == t;
}

static int has_failed(const Meeting *m, const Team *t) {
  (void)t;
  return nc_open_transport()->broken(m->team);
}

/* At the end of the program all ranks have met: nothing is under way, or it
   does not matter. */
void nc_free_device_teams(const Team *t) {
  free_meetings(is_of, t, t == NULL || nc_open_transport()->broken(t));
}

void nc_free_failed_device_teams(void) {
  free_meetings(has_failed, NULL, 1);
}

void nc_device_progress(void) {
  const Accelerator *a = nc_open_accelerator();
  if (a && meetings) a->progress();
}
