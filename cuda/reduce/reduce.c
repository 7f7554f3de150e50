/* SPDX-License-Identifier: MIT */
/*
** reduce.c - how a reduction is run: which kernels fit, how many threads share
** a result, in how many pieces its elements are cut.
*/
#include "cuda/reduce/reduce.h"

#include <string.h>

#include "cuda/pointwise/pointwise.h"

#define BLOCKS 1024 /* enough to fill a device, if in pieces */
#define MAX_PIECES 4096
#define ROUNDS 16    /* elements, or vectors, worth a thread */
#define MAX_CHAIN 64 /* elements folded one after the other */

typedef struct ReducePlan {
  const TensorIter *k;
  int inner; /* dimensions of the results */
  int each;  /* elements in a vector */
  ReduceKernel way;
  Reduction f;
} ReducePlan;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The largest power of two up to n, from 1 to most. */
static uint32_t floor_power2(int64_t n, uint32_t most) {
  uint32_t p = 1;
  while (p < most && 2 * (int64_t)p <= n) p *= 2;
  return p;
}

static int classof(Op op) {
  switch (op) {
#define UNARY(op, class, ...)
#define TEST(op, class, ...)
#define BINARY(op, class, ...)
#define COMPARE(op, class, ...)
#define TERNARY(op, class, ...)
#define CHOOSE(op, class, ...)
#define REDUCE(op, class, ...) \
  case OP_##op:                \
    return CLASS_##class;
#include "core/ops.def"
#include "core/ops_end.h"
    default: return -1;
  }
}

/* The type in which values of a row are folded. */
static DType accumulate_type(const TensorIter *k) {
  const OpClass kind = (OpClass)classof(k->op);
  const DType c = nc_compute_type(k->type[1]);
  if (kind == CLASS_TO_BOOL || kind == CLASS_COUNT) return DT_i64;
  return c == DT_f32 || c == DT_f64 ? c : DT_i64;
}

/* Are the steps of x along dimensions first .. last-1 whole vectors? */
static int steps_divide(const ReducePlan *p, int first, int last) {
  for (int d = first; d < last; d++)
    if (p->k->step[1][d] % p->each != 0) return 0;
  return 1;
}

static int rows_vectorize(const ReducePlan *p) {
  const TensorIter *k = p->k;
  if (k->nfold == 0 || k->step[1][p->inner] != 1) return 0;
  if (p->f.count < 4 * p->each) return 0; /* not worth it */
  if (k->nfold == 1) return 1;
  return k->size[p->inner] % p->each == 0 && steps_divide(p, 0, p->inner) &&
         steps_divide(p, p->inner + 1, k->nd) &&
         (uintptr_t)k->p[1] % NC_VECTOR == 0;
}

/* Do neighbouring results lie closer block_reduce than what each folds? */
static int results_adjacent(const ReducePlan *p) {
  const TensorIter *k = p->k;
  return p->inner > 0 && k->nfold > 0 && k->step[1][0] < k->step[1][p->inner];
}

static int columns_vectorize(const ReducePlan *p) {
  const TensorIter *k = p->k;
  return k->step[1][0] == 1 && k->size[0] % p->each == 0 &&
         steps_divide(p, 1, k->nd) && (uintptr_t)k->p[1] % NC_VECTOR == 0;
}

static void choose_kernel(ReducePlan *p) {
  if (results_adjacent(p)) {
    p->f.beside = 1;
    p->way = columns_vectorize(p) ? REDUCE_COLUMNS : REDUCE_STRIDED;
  } else p->way = rows_vectorize(p) ? REDUCE_ROWS : REDUCE_STRIDED;
}

/* Dimensions of results and of what they fold, as the kernels count them. */
static int make_offsets(ReducePlan *p) {
  const TensorIter *k = p->k;
  Reduction *f = &p->f;
  const int dense = p->way == REDUCE_ROWS && k->nfold == 1;
  int64_t size[NC_MAXDIM], step[2][NC_MAXDIM];
  memcpy(size, k->size, sizeof size);
  memcpy(step, k->step, sizeof step);
  f->ystep = p->inner ? (uint32_t)k->step[0][0] : 0;
  f->results = (uint32_t)k->n;
  f->length = f->count;
  if (p->way == REDUCE_COLUMNS) {
    size[0] /= p->each;
    step[0][0] *= p->each;
    step[1][0] *= p->each;
    f->results /= (uint32_t)p->each;
  }
  if (p->way == REDUCE_ROWS && !dense) {
    size[p->inner] /= p->each;
    step[1][p->inner] *= p->each;
    f->length /= p->each;
  }
  nc_makeoffsets(&f->kept, p->inner, size, 2,
                 (const int64_t(*)[NC_MAXDIM])step);
  if (dense || f->count == 0) return NC_OK;
  memmove(step[0], step[1] + p->inner, (size_t)k->nfold * sizeof **step);
  if (!nc_fitsoffsets(k->nfold, size + p->inner, 1,
                      (const int64_t(*)[NC_MAXDIM])step)) {
    nc_fail(NC_EVALUE,
            "%lld elements behind one result, which do not lie "
            "in a row, are more than a GPU can count",
            (long long)f->count);
    nc_hint("self:contiguous() first");
    return NC_EVALUE;
  }
  nc_makeoffsets(&f->folded, k->nfold, size + p->inner, 1,
                 (const int64_t(*)[NC_MAXDIM])step);
  return NC_OK;
}

/* How many threads share a result.  Within a warp, or a block of its own, if
   these are neighbours; else as many as leave warps full rows. */
static void choose_lanes(ReducePlan *p) {
  Reduction *f = &p->f;
  const int64_t units = p->way == REDUCE_ROWS && p->k->nfold == 1
                            ? f->length / p->each
                            : f->length;
  f->lanes = 1;
  if (f->beside) {
    const uint32_t columns = floor_power2(2 * (int64_t)f->results - 1, 32);
    f->lanes = floor_power2(units / 4, NC_REDUCEBLOCK / columns);
  } else if (units >= 4 * NC_REDUCEBLOCK || (units >= 128 && f->results < 64))
    f->lanes = NC_REDUCEBLOCK;
  else f->lanes = floor_power2(units / 4, 32);
  while ((1u << f->shift) < f->lanes) f->shift++;
}

/* Pieces by the shape alone: enough blocks, but each with work enough, and
   in kernels that keep no partial sums not too many elements in a chain. */
static void choose_pieces(ReducePlan *p) {
  Reduction *f = &p->f;
  const int64_t columns = NC_REDUCEBLOCK / f->lanes;
  const int64_t blocks = (f->results - 1) / columns + 1;
  const int dense = p->way == REDUCE_ROWS && p->k->nfold == 1;
  const int64_t unit = dense ? p->each : 1;
  int64_t pieces = BLOCKS / blocks, most;
  most = f->length / (f->lanes * ROUNDS * unit);
  pieces = least(pieces, most);
  if (p->way == REDUCE_COLUMNS) {
    int64_t chains = f->length / (f->lanes * MAX_CHAIN);
    if (pieces < chains) pieces = chains;
  }
  pieces = least(pieces, MAX_PIECES);
  if (pieces < 1) pieces = 1;
  f->piece = (f->length - 1) / pieces + 1;
  if (dense) f->piece = (f->piece + 127) / 128 * 128;
  f->pieces = f->length > 0 ? (uint32_t)((f->length - 1) / f->piece + 1) : 1;
  if (f->pieces == 1) f->piece = f->length;
}

static ReduceLauncher *launcher(DType t) {
  switch (t) {
    case DT_b8:
    case DT_u8: return nc_reduce_u8;
    case DT_i8: return nc_reduce_i8;
    case DT_i16: return nc_reduce_i16;
    case DT_i32: return nc_reduce_i32;
    case DT_i64: return nc_reduce_i64;
    case DT_f16: return nc_reduce_f16;
    case DT_bf16: return nc_reduce_bf16;
    case DT_f32: return nc_reduce_f32;
    default: return nc_reduce_f64;
  }
}

static ReduceLauncher *strided_launcher(DType t) {
  const DType c = nc_compute_type(t);
  return c == DT_f32   ? nc_reduce_strided_f32
         : c == DT_f64 ? nc_reduce_strided_f64
                       : nc_reduce_strided_i64;
}

/* The second launch: folds what the pieces left in scratch memory. */
static int merge(const Device *d, const ReducePlan *p, const void *part) {
  const TensorIter *k = p->k;
  const int64_t pieces = p->f.pieces;
  int64_t step[2][NC_MAXDIM], results = 1;
  Reduction f;
  ReducePlan again = *p;
  memset(&f, 0, sizeof f);
  f.x = part;
  f.y = k->p[0];
  f.par = p->f.par;
  f.count = p->f.count;
  f.length = f.piece = pieces;
  f.pieces = 1;
  f.merge = 1;
  f.beside = k->n > 1;
  f.ytype = (int32_t)k->type[0];
  f.results = (uint32_t)k->n;
  memcpy(step[0], k->step[0], sizeof step[0]);
  for (int i = 0; i < p->inner; i++) {
    step[1][i] = results;
    results *= k->size[i];
  }
  nc_makeoffsets(&f.kept, p->inner, k->size, 2,
                 (const int64_t(*)[NC_MAXDIM])step);
  step[0][0] = results;
  nc_makeoffsets(&f.folded, 1, &pieces, 1, (const int64_t(*)[NC_MAXDIM])step);
  again.f = f;
  again.way = REDUCE_STRIDED;
  choose_lanes(&again);
  return nc_check_op_launch(
      d, k,
      strided_launcher(accumulate_type(k))(k->op, REDUCE_STRIDED, &again.f,
                                           nc_current_stream(d)));
}

static int launch(const Device *d, ReducePlan *p) {
  const TensorIter *k = p->k;
  ReduceLauncher *f = p->way == REDUCE_STRIDED ? strided_launcher(k->type[1])
                                               : launcher(k->type[1]);
  void *part = NULL;
  int r;
  p->f.y = k->p[0];
  if (p->f.pieces > 1) {
    TRY(nc_scratch(d, &part, p->f.pieces * k->n * 8));
    p->f.y = part;
  }
  r = nc_check_op_launch(d, k, f(k->op, p->way, &p->f, nc_current_stream(d)));
  if (r == NC_OK && part) r = merge(d, p, part);
  nc_scratchfree(d, part);
  return r;
}

/* Can what is folded be stored as the result's type? */
static int stores(const TensorIter *k) {
  const DType a = accumulate_type(k), y = k->type[0];
  if (a == DT_i64) return y <= DT_i64;
  return a == DT_f64 ? y == DT_f64 : nc_compute_type(y) == DT_f32;
}

static int fold(const Device *d, const TensorIter *k) {
  ReducePlan p;
  if (!stores(k))
    return nc_fail(NC_EDTYPE, "no CUDA kernel folds %s to %s",
                   nc_typename(k->type[1]), nc_typename(k->type[0]));
  memset(&p, 0, sizeof p);
  p.k = k;
  p.inner = k->nd - k->nfold;
  p.each = (int)(NC_VECTOR / nc_dtypesize(k->type[1]));
  p.f.count = 1;
  for (int i = p.inner; i < k->nd; i++) p.f.count *= k->size[i];
  p.f.x = k->p[1];
  p.f.xtype = (int32_t)k->type[1];
  p.f.ytype = (int32_t)k->type[0];
  p.f.par = nc_parameterbits(k->par[0], nc_compute_type(k->type[1]));
  choose_kernel(&p);
  TRY(make_offsets(&p));
  choose_lanes(&p);
  choose_pieces(&p);
  nc_record_use(d, k->p[0]);
  nc_record_use(d, k->p[1]);
  return launch(d, &p);
}

int nc_runreduce(const Device *d, const TensorIter *k) {
  return nc_in_chunks(d, k, k->nd - k->nfold, fold);
}
