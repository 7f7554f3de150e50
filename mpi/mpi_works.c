/* SPDX-License-Identifier: MIT */
/*
** mpi_works.c - the operations.  Each becomes one or several non-blocking calls
** of MPI, whose counts are an int: what has more elements goes in parts.  All
** parts are started at once, as a part started when another is done would break
** the common order of the ranks.
*/
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_transport.h"

/*
** Works
*/
static int has_blocks(CollKind k) {
  return k == COLL_all_gather || k == COLL_gather || k == COLL_scatter ||
         k == COLL_all_to_all;
}

static int64_t count_parts(int64_t n) {
  return n > tp_settings.chunk ? (n - 1) / tp_settings.chunk + 1 : 1;
}

static int new_work(Work **out, const Coll *c, int64_t parts) {
  const int several = c->kind == COLL_reduce_scatter && parts > 1;
  const size_t n = (size_t)parts * (several ? (size_t)c->team->size : 1);
  Work *w = calloc(1, sizeof *w);
  *out = NULL;
  if (w == NULL) return tp_core->fail(NC_ENOMEM, "out of memory");
  w->c = *c;
  c->team->works++;
  w->req = n == 1 ? &w->one : calloc(n, sizeof *w->req);
  w->types = parts == 1 ? NULL : calloc((size_t)parts, sizeof *w->types);
  *out = w;
  if (w->req && (w->types || parts == 1)) return NC_OK;
  tp_freework(w);
  *out = NULL;
  return tp_core->fail(NC_ENOMEM, "out of memory");
}

void tp_freework(Work *w) {
  if (w == NULL) return;
  if (w->c.async && !w->done) tp_count_async(-1);
  w->c.team->works--;
  tp_free_left(w->c.team);
  tp_lock();
  for (int i = 0; i < w->ntypes; i++) MPI_Type_free(&w->types[i]);
  tp_unlock();
  if (w->req != &w->one) free(w->req);
  free(w->types);
  free(w);
}

/*
** Starting.  The caller holds the lock.
*/

/* One part, m elements of each block from `at' on, of an operation in which a
   side has a block for each rank: of it, an element of MPI is the part of a
   block, and they are a block apart. */
typedef struct Part {
  const char *in;
  char *out;
  int m;
  MPI_Datatype type; /* of a side of one block, m of them */
  int blocks;        /* of the other side: how many of `block' */
  MPI_Datatype block;
} Part;

static int set_block_type(Work *w, Part *p) {
  MPI_Datatype part;
  int r;
  p->blocks = p->m;
  p->block = p->type;
  if (w->types == NULL || !has_blocks(w->c.kind)) return MPI_SUCCESS;
  r = MPI_Type_contiguous(p->m, p->type, &part);
  if (r != MPI_SUCCESS) return r;
  r = MPI_Type_create_resized(part, 0, (MPI_Aint)(w->c.n * tp_bytes(w->c.type)),
                              &p->block);
  MPI_Type_free(&part);
  if (r != MPI_SUCCESS) return r;
  w->types[w->ntypes++] = p->block;
  p->blocks = 1;
  return MPI_Type_commit(&p->block);
}

static int start_fold(Work *w, const Part *p, MPI_Request *q) {
  const Coll *c = &w->c;
  const MPI_Op op = tp_op(c->type, c->fold);
  const int isroot = c->team->rank == c->root;
  const void *own = p->in ? p->in : MPI_IN_PLACE;
  if (c->kind == COLL_all_reduce)
    return MPI_Iallreduce(own, p->out, p->m, p->type, op, c->team->data, q);
  if (!isroot)
    return MPI_Ireduce(p->in ? p->in : p->out, NULL, p->m, p->type, op, c->root,
                       c->team->data, q);
  return MPI_Ireduce(own, p->out, p->m, p->type, op, c->root, c->team->data, q);
}

/* Parts of a block cannot be folded as elements of a derived type, so each rank
   is the root of a reduction of its part. */
static int start_reduce_scatter(Work *w, const Part *p, MPI_Request *q) {
  const Coll *c = &w->c;
  const MPI_Op op = tp_op(c->type, c->fold);
  const int64_t bytes = c->n * tp_bytes(c->type);
  int r = MPI_SUCCESS;
  if (w->types == NULL)
    return MPI_Ireduce_scatter_block(p->in, p->out, p->m, p->type, op,
                                     c->team->data, q);
  for (int i = 0; i < c->team->size && r == MPI_SUCCESS; i++)
    r = MPI_Ireduce(p->in + i * bytes, c->team->rank == i ? p->out : NULL, p->m,
                    p->type, op, i, c->team->data, &w->req[w->n++]);
  w->n--;
  return r;
}

static int start_part(Work *w, Part *p) {
  const Coll *c = &w->c;
  MPI_Comm k = c->team->data;
  MPI_Request *q = &w->req[w->n];
  const int root = c->root;
  int r = set_block_type(w, p);
  if (r != MPI_SUCCESS) return r;
  switch (c->kind) {
    case COLL_barrier: r = MPI_Ibarrier(k, q); break;
    case COLL_broadcast:
      r = MPI_Ibcast(p->out, p->m, p->type, root, k, q);
      break;
    case COLL_all_reduce:
    case COLL_reduce: r = start_fold(w, p, q); break;
    case COLL_all_gather:
      r = MPI_Iallgather(p->in, p->m, p->type, p->out, p->blocks, p->block, k,
                         q);
      break;
    case COLL_gather:
      r = MPI_Igather(p->in, p->m, p->type, p->out, p->blocks, p->block, root,
                      k, q);
      break;
    case COLL_scatter:
      r = MPI_Iscatter(p->in, p->blocks, p->block, p->out, p->m, p->type, root,
                       k, q);
      break;
    case COLL_reduce_scatter: r = start_reduce_scatter(w, p, q); break;
    case COLL_all_to_all:
      r = MPI_Ialltoall(p->in, p->blocks, p->block, p->out, p->blocks, p->block,
                        k, q);
      break;
    case COLL_send:
      r = MPI_Isend(p->in, p->m, p->type, root, c->tag, k, q);
      break;
    default:
      r = MPI_Irecv(p->out, p->m, p->type, root < 0 ? MPI_ANY_SOURCE : root,
                    c->tag < 0 ? MPI_ANY_TAG : c->tag, k, q);
  }
  w->n++;
  return r;
}

static int start_parts(Work *w) {
  const Coll *c = &w->c;
  const int64_t chunk = tp_settings.chunk, size = tp_bytes(c->type);
  int64_t at = 0;
  int r;
  do {
    const int64_t left = c->n - at;
    Part p = { .m = (int)(left < chunk ? left : chunk),
               .type = tp_type(c->type) };
    p.in = c->in ? (const char *)c->in + at * size : NULL;
    p.out = c->out ? (char *)c->out + at * size : NULL;
    r = start_part(w, &p);
    at += chunk;
  } while (r == MPI_SUCCESS && at < c->n);
  return r;
}

static int check_message(const Coll *c, int64_t parts) {
  if (c->kind == COLL_recv && c->root < 0 && parts > 1)
    return tp_core->fail(NC_EVALUE,
                         "%lld elements come in several messages: src must say "
                         "from which rank",
                         (long long)c->n);
  return NC_OK;
}

int tp_fail_broken(void) {
  return tp_core->fail(NC_EPEER, "this group was left in the middle of an "
                                 "operation and cannot go on");
}

int tp_announce(Coll *c) {
  Team *t = c->team;
  if (t->broken) return tp_fail_broken();
  c->number = ++t->number;
  if (tp_settings.check && !t->deaf && t->size > 1) return tp_compare(c);
  return NC_OK;
}

int tp_start(Work **out, const Coll *given) {
  Coll announced = *given, *c = &announced;
  Team *t = c->team;
  const int64_t parts = count_parts(c->n);
  Work *w;
  int r;
  *out = NULL;
  if (t->broken) return tp_fail_broken();
  TRY(check_message(c, parts));
  if (c->kind < COLL_send && c->number == 0) TRY(tp_announce(c));
  /* an empty message is sent, too: who receives it may wait for any */
  if (c->n == 0 && c->kind != COLL_barrier && c->kind < COLL_send) return NC_OK;
  TRY(new_work(&w, c, parts));
  tp_lock();
  r = start_parts(w);
  tp_unlock();
  if (r != MPI_SUCCESS) { /* what was started stays with MPI */
    t->broken = 1;
    return tp_failed(tp_names[c->kind], r);
  }
  if (c->async) tp_count_async(1);
  *out = w;
  return NC_OK;
}

/*
** Ending
*/

/* Did as many elements arrive as were expected? */
static int received(Work *w, const MPI_Status *status) {
  int64_t n = 0;
  for (int i = 0; i < w->n; i++) {
    int k;
    MPI_Get_count(&status[i], tp_type(w->c.type), &k);
    n += k;
  }
  w->source = status[0].MPI_SOURCE;
  if (n == w->c.n) return NC_OK;
  return tp_core->fail(
      NC_EVALUE, "rank %d sent %lld elements, %lld are expected here",
      w->c.team->world[w->source], (long long)n, (long long)w->c.n);
}

static int finish(Work *w, const MPI_Status *status) {
  w->done = 1;
  if (w->c.async) tp_count_async(-1);
  return w->c.kind == COLL_recv ? received(w, status) : NC_OK;
}

/* Statuses for the requests of the work, `few' if they suffice; NULL: there is
   no memory. */
static MPI_Status *new_statuses(const Work *w, MPI_Status few[4]) {
  if (w->n <= 4) return few;
  return malloc(sizeof *few * (size_t)w->n);
}

/* What was done before the team broke is there; nothing else will be. */
static int wait_in_broken(Work *w) {
  int done;
  TRY(tp_test(w, &done));
  return done ? NC_OK : tp_fail_broken();
}

int tp_waitwork(Work *w, double seconds) {
  const Wait how = { w->c.team, tp_names[w->c.kind], w->c.number,
                     w->c.kind >= COLL_send ? w->c.root : -1,
                     seconds > 0 ? seconds : tp_settings.timeout };
  MPI_Status few[4], *status;
  int r;
  if (w->done) return NC_OK;
  if (w->c.team->broken) return wait_in_broken(w);
  status = new_statuses(w, few);
  if (status == NULL) return tp_core->fail(NC_ENOMEM, "out of memory");
  r = tp_wait(w->req, w->n, status, &how);
  if (r == NC_OK) r = finish(w, status);
  else if (r == NC_EVALUE) w->done = 1; /* MPI has done with the message */
  if (status != few) free(status);
  return r;
}

int tp_test(Work *w, int *done) {
  MPI_Status few[4], *status;
  int r = MPI_SUCCESS, flag = 0, result = NC_OK;
  *done = w->done;
  if (w->done) return NC_OK;
  status = new_statuses(w, few);
  if (status == NULL) return tp_core->fail(NC_ENOMEM, "out of memory");
  tp_lock();
  r = MPI_Testall(w->n, w->req, &flag, status);
  tp_unlock();
  if (r != MPI_SUCCESS) result = tp_failed(tp_names[w->c.kind], r);
  else if (flag) result = finish(w, status);
  *done = w->done;
  if (status != few) free(status);
  return result;
}

void tp_sender(const Work *w, int *rank) {
  *rank = w->source;
}
