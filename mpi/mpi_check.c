/* SPDX-License-Identifier: MIT */
/*
** mpi_check.c - do all ranks of a team ask for the same operation?  MPI itself
** would add floats to integers, or end the program.
**
** Each rank makes a hash of what it asks for.  The maximum of the hashes and of
** their complements shows every rank whether all are equal.  Only then, after a
** difference, rank 0 of the team collects what each asks for, and all ranks
** raise the text that names the parties.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_transport.h"

enum { SIGN_TEXT = 130, MAXDIM = 8 };

/* Has the operation a fold, or one rank that differs from the others? */
static int has_fold(CollKind k) {
  return k == COLL_all_reduce || k == COLL_reduce || k == COLL_reduce_scatter;
}

static int has_root(CollKind k) {
  return k == COLL_broadcast || k == COLL_reduce || k == COLL_gather ||
         k == COLL_scatter;
}

/* What is said of operands that do not lie on the host. */
static const char *const places[] = { "", " on a GPU",
                                      " on a GPU that is new here" };

static void describe(char text[SIGN_TEXT], const Coll *c, int64_t number) {
#define X(id, name, storage, category) name,
  static const char *const types[] = { DTYPES(X) };
#undef X
  int at = snprintf(text, SIGN_TEXT, "#%lld %s", (long long)number,
                    tp_names[c->kind]);
  if (c->kind == COLL_barrier || c->kind == COLL_split) return;
  at += snprintf(text + at, (size_t)(SIGN_TEXT - at), "%s%s %s[",
                 has_fold(c->kind) ? " " : "",
                 has_fold(c->kind) ? tp_folds[c->fold] : "", types[c->type]);
  for (int d = 0; d < c->nd && at < SIGN_TEXT - 50; d++)
    at += snprintf(text + at, (size_t)(SIGN_TEXT - at), d ? "x%lld" : "%lld",
                   (long long)c->size[d]);
  at += snprintf(text + at, (size_t)(SIGN_TEXT - at), "]%s", places[c->place]);
  if (has_root(c->kind))
    snprintf(text + at, (size_t)(SIGN_TEXT - at), ", rank %d",
             c->team->world[c->root]);
}

/* FNV-1a of the numbers that must agree. */
static int64_t hash(const Coll *c, int64_t number) {
  uint64_t h = 14695981039346656037u;
  int64_t v[7 + MAXDIM] = { number, c->kind, c->place };
  int n = 3;
  if (c->kind != COLL_barrier && c->kind != COLL_split) {
    v[n++] = c->type;
    v[n++] = has_fold(c->kind) ? (int64_t)c->fold : -1;
    v[n++] = has_root(c->kind) ? c->root : -1;
    v[n++] = c->n;
    for (int d = 0; d < c->nd && d < MAXDIM; d++) v[n++] = c->size[d];
  }
  for (int i = 0; i < n; i++)
    for (int b = 0; b < 64; b += 8)
      h = (h ^ ((uint64_t)v[i] >> b & 0xff)) * 1099511628211u;
  return (int64_t)(h >> 1);
}

static int wait_on(const Coll *c, MPI_Request *req) {
  const Wait w = { c->team, tp_names[c->kind], c->team->number, -1,
                   tp_settings.timeout };
  return tp_wait(req, 1, MPI_STATUS_IGNORE, &w);
}

/* "rank 0, 2: #1 barrier; rank 1: ..." from the texts of all ranks. */
static void name_parties(char *out, size_t room, const Team *t,
                         char (*text)[SIGN_TEXT]) {
  size_t at = 0;
  for (int i = 0; i < t->size && at + 2 * SIGN_TEXT < room; i++) {
    int earlier = 0, more = 0;
    for (int j = 0; j < i && !earlier; j++)
      earlier = strcmp(text[i], text[j]) == 0;
    if (earlier) continue;
    at += (size_t)snprintf(out + at, room - at, "%srank ", at ? "; " : "");
    for (int j = i; j < t->size && more < 12; j++)
      if (strcmp(text[i], text[j]) == 0)
        at += (size_t)snprintf(out + at, room - at, more++ ? ",%d" : "%d",
                               t->world[j]);
    at += (size_t)snprintf(out + at, room - at, "%s: %s",
                           more == 12 ? ",..." : "", text[i]);
  }
}

static int report_difference(const Coll *c) {
  Team *t = c->team;
  char(*all)[SIGN_TEXT] = calloc((size_t)t->size + 1, SIGN_TEXT);
  char *verdict = calloc(1, NOTE_TEXT), *mine;
  MPI_Request req;
  int r;
  if (all == NULL || verdict == NULL)
    return tp_core->fail(NC_ENOMEM, "out of memory");
  mine = all[t->size];
  describe(mine, c, t->number);
  tp_lock();
  MPI_Igather(mine, SIGN_TEXT, MPI_CHAR, all, SIGN_TEXT, MPI_CHAR, 0,
              t->control, &req);
  tp_unlock();
  r = wait_on(c, &req);
  if (r == NC_OK && t->rank == 0) name_parties(verdict, NOTE_TEXT, t, all);
  if (r == NC_OK) {
    tp_lock();
    MPI_Ibcast(verdict, NOTE_TEXT, MPI_CHAR, 0, t->control, &req);
    tp_unlock();
    r = wait_on(c, &req);
  }
  if (r != NC_OK) return r; /* MPI may still write to the texts */
  r = tp_core->fail(NC_EVALUE, "the ranks ask for different things: %s",
                    verdict);
  free(all);
  free(verdict);
  return r;
}

int tp_compare(const Coll *c) {
  Team *t = c->team;
  const int64_t h = hash(c, t->number);
  MPI_Request req;
  t->hash[0] = h;
  t->hash[1] = INT64_MAX - h;
  MPI(MPI_Iallreduce(t->hash, t->most, 2, MPI_INT64_T, MPI_MAX, t->control,
                     &req));
  TRY(wait_on(c, &req));
  if (t->most[0] == h && t->most[1] == t->hash[1]) return NC_OK;
  return report_difference(c);
}

int tp_meet_to_split(Team *t) {
  const Coll c = { .kind = COLL_split, .team = t };
  if (t->broken) return tp_fail_broken();
  t->number++;
  return t->size > 1 ? tp_compare(&c) : NC_OK;
}
