/* SPDX-License-Identifier: MIT */
/*
** nccl_exchange.c - the operations of the emulated NCCL.  None waits: a poll
** does what can be done, so that the host sees a rank that does not come as it
** does with a real device.
*/
#include <string.h>

#include "cuda/emulation/libraries/gemm.h"
#include "cuda/emulation/libraries/nccl_comm.h"

size_t emu_nccl_size(ncclDataType_t t) {
  static const size_t size[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
  return size[t];
}

/*
** Folds
*/
#define FOLD(T)                                                  \
  {                                                              \
    T *a = acc;                                                  \
    const T *b = x;                                              \
    for (size_t i = 0; i < n; i++)                               \
      a[i] = (T)(op == ncclSum    ? a[i] + b[i]                  \
                 : op == ncclProd ? a[i] * b[i]                  \
                 : op == ncclMax  ? (a[i] > b[i] ? a[i] : b[i])  \
                                  : (a[i] < b[i] ? a[i] : b[i])); \
    return;                                                      \
  }

static void fold_halves(void *acc, const void *x, size_t n, cudaDataType type,
                        ncclRedOp_t op) {
  for (size_t i = 0; i < n; i++) {
    const double a = emu_get(acc, i, type), b = emu_get(x, i, type);
    emu_put(acc, i,
            op == ncclSum    ? a + b
            : op == ncclProd ? a * b
            : op == ncclMax  ? (a > b ? a : b)
                             : (a < b ? a : b),
            type);
  }
}

static void fold(void *acc, const void *x, size_t n, ncclDataType_t type,
                 ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: FOLD(int8_t)
    case ncclUint8: FOLD(uint8_t)
    case ncclInt32: FOLD(uint32_t) /* wraps; see signed_extreme */
    case ncclUint32: FOLD(uint32_t)
    case ncclInt64: FOLD(uint64_t)
    case ncclUint64: FOLD(uint64_t)
    case ncclFloat32: FOLD(float)
    case ncclFloat64: FOLD(double)
    case ncclFloat16: fold_halves(acc, x, n, CUDA_R_16F, op); return;
    default: fold_halves(acc, x, n, CUDA_R_16BF, op); return;
  }
}

static void signed_extreme(void *acc, const void *x, size_t n,
                           ncclDataType_t type, ncclRedOp_t op) {
  if (type == ncclInt32) FOLD(int32_t)
  FOLD(int64_t)
}

static void fold_slot(void *acc, const void *x, size_t bytes,
                      const Exchange *e) {
  const size_t n = bytes / emu_nccl_size(e->type);
  if ((e->type == ncclInt32 || e->type == ncclInt64) && e->op >= ncclMax)
    signed_extreme(acc, x, n, e->type, e->op);
  else fold(acc, x, n, e->type, e->op);
}

/*
** Rounds
*/
static size_t block_size(const Exchange *e) {
  return e->count * emu_nccl_size(e->type);
}

/* The bytes that the ranks show in all rounds. */
static size_t all_bytes(const Exchange *e) {
  return e->kind == EX_REDUCE_SCATTER ? block_size(e) * (size_t)e->c->n
                                      : block_size(e);
}

static size_t part_size(const Exchange *e) {
  const size_t left = all_bytes(e) - e->at;
  return left < NCCL_ROOM ? left : NCCL_ROOM;
}

/* What all ranks must ask for alike. */
static uint64_t sign_of(const Exchange *e) {
  const int folds = e->kind != EX_BROADCAST && e->kind != EX_ALL_GATHER;
  uint64_t h = (uint64_t)e->kind * 31 + (uint64_t)e->type;
  h = h * 31 + (folds ? (uint64_t)e->op : 0);
  h = h * 31 + (uint64_t)e->root;
  return h * 1000003 + (uint64_t)e->count;
}

/* Shows this rank's bytes, when all ranks have read the last ones. */
static int show(Exchange *e) {
  ncclComm_t c = e->c;
  Slot *own = &c->s->slot[c->rank];
  for (int r = 0; r < c->n; r++)
    if (atomic_load(&c->s->slot[r].read) < c->round) return 0;
  if (e->kind != EX_BROADCAST || c->rank == e->root) {
    emu_access(e->in + e->at, part_size(e), 0);
    memcpy(own->data, e->in + e->at, part_size(e));
  }
  own->sign = sign_of(e);
  atomic_store(&own->written, c->round + 1);
  return e->shown = 1;
}

/* Have all ranks shown theirs? */
static int all_shown(const Exchange *e) {
  ncclComm_t c = e->c;
  for (int r = 0; r < c->n; r++)
    if (atomic_load(&c->s->slot[r].written) < c->round + 1) return 0;
  for (int r = 0; r < c->n; r++)
    if (c->s->slot[r].sign != sign_of(e))
      emu_report("NCCL",
                 "ranks %d and %d of a communicator ask for different "
                 "things: a device would hang, or give anything",
                 c->rank, r);
  return 1;
}

static void store(char *to, const void *from, size_t n) {
  emu_access(to, n, 1);
  memcpy(to, from, n);
}

/* Stores that part of the result of a fold that is of this rank's block. */
static void store_block(const Exchange *e, const char *result, size_t n) {
  const size_t block = block_size(e), begin = block * (size_t)e->c->rank;
  const size_t from = e->at > begin ? e->at : begin;
  const size_t to = e->at + n < begin + block ? e->at + n : begin + block;
  if (from < to)
    store(e->out + (from - begin), result + (from - e->at), to - from);
}

static void read_folded(Exchange *e, size_t n) {
  static _Alignas(16) char result[NCCL_ROOM];
  const ncclComm_t c = e->c;
  memcpy(result, c->s->slot[0].data, n);
  for (int r = 1; r < c->n; r++) fold_slot(result, c->s->slot[r].data, n, e);
  if (e->kind == EX_REDUCE_SCATTER) store_block(e, result, n);
  else if (e->kind == EX_ALL_REDUCE || c->rank == e->root)
    store(e->out + e->at, result, n);
}

static void read_round(Exchange *e) {
  ncclComm_t c = e->c;
  const size_t n = part_size(e);
  if (e->kind == EX_BROADCAST)
    store(e->out + e->at, c->s->slot[e->root].data, n);
  else if (e->kind == EX_ALL_GATHER)
    for (int r = 0; r < c->n; r++)
      store(e->out + block_size(e) * (size_t)r + e->at, c->s->slot[r].data, n);
  else read_folded(e, n);
  atomic_store(&c->s->slot[c->rank].read, ++c->round);
  e->at += n;
  e->shown = 0;
}

int emu_nccl_exchange(void *arg) {
  Exchange *e = arg;
  while (!e->c->aborted && e->at < all_bytes(e)) {
    if (!e->shown && !show(e)) return 0;
    if (!all_shown(e)) return 0;
    read_round(e);
  }
  emu_nccl_release(e->c);
  return 1;
}

/*
** Messages
*/
static int send_piece(Transfer *t, Pipe *p) {
  const size_t left = t->n - t->at, n = left < NCCL_PIPE ? left : NCCL_PIPE;
  if (atomic_load(&p->written) != atomic_load(&p->read)) return 0;
  emu_access(t->p + t->at, n, 0);
  memcpy(p->data, t->p + t->at, n);
  p->n = n;
  t->at += n;
  atomic_fetch_add(&p->written, 1);
  return 1;
}

static int receive_piece(Transfer *t, Pipe *p) {
  if (atomic_load(&p->written) == atomic_load(&p->read)) return 0;
  if (p->n > t->n - t->at)
    emu_report("NCCL", "a rank sends more than another one receives");
  store(t->p + t->at, p->data, p->n);
  t->at += p->n;
  atomic_fetch_add(&p->read, 1);
  return 1;
}

/* Is an earlier message of the same two ranks still on its way? */
static int must_wait(const Group *g, int i) {
  for (int k = 0; k < i; k++)
    if (g->t[k].peer == g->t[i].peer && g->t[k].issend == g->t[i].issend &&
        g->t[k].at < g->t[k].n)
      return 1;
  return 0;
}

static int move(Group *g, int i) {
  const ncclComm_t c = g->c;
  Transfer *t = &g->t[i];
  if (t->at == t->n || must_wait(g, i)) return 0;
  return t->issend ? send_piece(t, &c->s->pipe[c->rank][t->peer])
                   : receive_piece(t, &c->s->pipe[t->peer][c->rank]);
}

int emu_nccl_group(void *arg) {
  Group *g = arg;
  int moved = 1, left = 0;
  while (moved && !g->c->aborted) {
    moved = left = 0;
    for (int i = 0; i < g->n; i++) {
      moved |= move(g, i);
      left |= g->t[i].at < g->t[i].n;
    }
  }
  if (left && !g->c->aborted) return 0;
  emu_nccl_release(g->c);
  return 1;
}
