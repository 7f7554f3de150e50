/* SPDX-License-Identifier: MIT */
/*
** nccl_calls.c - the operations of core/transport.h as calls of NCCL.  What
** only moves elements moves bytes; NCCL has folds for all dtypes but int16, and
** none of bits.
*/
#include "cuda/nccl/nccl_team.h"

/* Of a dtype that NCCL folds; -1: it does not. */
static int type_of(DType t) {
  switch (t) {
    case DT_b8:
    case DT_u8: return NCCL_U8;
    case DT_i8: return NCCL_I8;
    case DT_i32: return NCCL_I32;
    case DT_i64: return NCCL_I64;
    case DT_f16: return NCCL_F16;
    case DT_bf16: return NCCL_BF16;
    case DT_f32: return NCCL_F32;
    case DT_f64: return NCCL_F64;
    default: return -1;
  }
}

/* bool is 0 or 1, so that "or" is the maximum, and "and" the minimum. */
static int fold_of(DType t, CollFold f) {
  static const signed char folds[FOLD_COUNT] = {
    [FOLD_sum] = NCCL_SUM, [FOLD_prod] = NCCL_PROD, [FOLD_min] = NCCL_MIN,
    [FOLD_max] = NCCL_MAX, [FOLD_band] = -1,        [FOLD_bor] = -1,
    [FOLD_bxor] = -1
  };
  static const signed char truths[FOLD_COUNT] = {
    [FOLD_sum] = NCCL_MAX, [FOLD_prod] = NCCL_MIN, [FOLD_min] = NCCL_MIN,
    [FOLD_max] = NCCL_MAX, [FOLD_band] = NCCL_MIN, [FOLD_bor] = NCCL_MAX,
    [FOLD_bxor] = -1
  };
  return t == DT_b8 ? truths[f] : folds[f];
}

int nc_cuda_teamcan(const Coll *c) {
  switch (c->kind) {
    case COLL_all_reduce:
    case COLL_reduce:
    case COLL_reduce_scatter:
      return type_of(c->type) >= 0 && fold_of(c->type, c->fold) >= 0;
    case COLL_broadcast:
    case COLL_all_gather:
    case COLL_gather:
    case COLL_scatter:
    case COLL_all_to_all: return 1;
    default: return 0;
  }
}

/*
** Blocks of several ranks: sends and receives in a group.  The own block is
** copied.
*/
static char *block(const void *p, const Coll *c, int rank) {
  return (char *)(uintptr_t)p + rank * c->n * nc_dtypesize(c->type);
}

static int send(const DeviceTeam *t, const Coll *c, const void *p, int peer) {
  return nc_nccl()->send(p, (size_t)(c->n * nc_dtypesize(c->type)), NCCL_U8,
                         peer, t->comm, t->stream->handle);
}

static int receive(const DeviceTeam *t, const Coll *c, void *p, int peer) {
  return nc_nccl()->recv(p, (size_t)(c->n * nc_dtypesize(c->type)), NCCL_U8,
                         peer, t->comm, t->stream->handle);
}

static int gather(const DeviceTeam *t, const Coll *c) {
  int r = NCCL_SUCCESS;
  if (t->rank != c->root) return send(t, c, c->in, c->root);
  for (int i = 0; i < t->size && r == NCCL_SUCCESS; i++)
    if (i != t->rank) r = receive(t, c, block(c->out, c, i), i);
  return r;
}

static int scatter(const DeviceTeam *t, const Coll *c) {
  int r = NCCL_SUCCESS;
  if (t->rank != c->root) return receive(t, c, c->out, c->root);
  for (int i = 0; i < t->size && r == NCCL_SUCCESS; i++)
    if (i != t->rank) r = send(t, c, block(c->in, c, i), i);
  return r;
}

static int all_to_all(const DeviceTeam *t, const Coll *c) {
  int r = NCCL_SUCCESS;
  for (int i = 0; i < t->size && r == NCCL_SUCCESS; i++) {
    if (i == t->rank) continue;
    r = send(t, c, block(c->in, c, i), i);
    if (r == NCCL_SUCCESS) r = receive(t, c, block(c->out, c, i), i);
  }
  return r;
}

static int copy_own_block(const DeviceTeam *t, const Coll *c) {
  const char *from = c->in;
  char *to = c->out;
  if (c->kind != COLL_all_to_all && t->rank != c->root) return NC_OK;
  if (c->kind != COLL_gather) from = block(c->in, c, t->rank);
  if (c->kind != COLL_scatter) to = block(c->out, c, t->rank);
  return nc_cudastatus(
      cudaMemcpyAsync(to, from, (size_t)(c->n * nc_dtypesize(c->type)),
                      cudaMemcpyDeviceToDevice, t->stream->handle));
}

static int call_group(DeviceTeam *t, const Coll *c) {
  int r, end;
  TRY(copy_own_block(t, c));
  r = nc_nccl()->begin();
  if (r != NCCL_SUCCESS) return nc_settle_team(t, r);
  r = c->kind == COLL_gather    ? gather(t, c)
      : c->kind == COLL_scatter ? scatter(t, c)
                                : all_to_all(t, c);
  end = nc_nccl()->end();
  return nc_settle_team(t, r == NCCL_SUCCESS ? end : r);
}

int nc_call_nccl(DeviceTeam *t, const Coll *c) {
  const Nccl *n = nc_nccl();
  const cudaStream_t s = t->stream->handle;
  const int type = type_of(c->type), fold = fold_of(c->type, c->fold);
  const size_t count = (size_t)c->n;
  const size_t bytes = count * (size_t)nc_dtypesize(c->type);
  const void *in = c->in ? c->in : c->out;
  int r;
  switch (c->kind) {
    case COLL_all_reduce:
      r = n->allreduce(in, c->out, count, type, fold, t->comm, s);
      break;
    case COLL_reduce:
      r = n->reduce(in, c->out, count, type, fold, c->root, t->comm, s);
      break;
    case COLL_broadcast:
      r = n->broadcast(in, c->out, bytes, NCCL_U8, c->root, t->comm, s);
      break;
    case COLL_all_gather:
      r = n->allgather(in, c->out, bytes, NCCL_U8, t->comm, s);
      break;
    case COLL_reduce_scatter:
      r = n->reducescatter(in, c->out, count, type, fold, t->comm, s);
      break;
    default: return call_group(t, c);
  }
  return nc_settle_team(t, r);
}
