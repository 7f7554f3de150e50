/* SPDX-License-Identifier: MIT */
/*
** reduce.c - plans a reduction: chooses the kernel, the number of threads that
** share a result, and the number of pieces that its elements are divided into.
*/
#include "cuda/reduce/reduce.h"

#include <string.h>

#include "cuda/blocks.h"
#include "cuda/pointwise/pointwise.h"

#define BLOCKS 1024        /* enough to fill a device */
#define COLUMN_BLOCKS 512  /* the same, all of them resident on a large one */
#define MANY_COLUMNS 16384 /* vectors: enough for so many blocks of 64 */
#define MAX_PIECES 4096
#define ROUNDS 16     /* elements or vectors of a thread, at least */
#define MAX_CHAIN 256 /* elements folded without partial sums but of pairs */

typedef struct ReducePlan {
  const TensorIter *k;
  int inner; /* dimensions of the results */
  int each;  /* elements in a vector */
  ReduceKernel way;
  Reduction f;
} ReducePlan;

/* The type of the accumulator. */
static DType accumulate_type(const TensorIter *k) {
  const OpClass kind = nc_opinfo[k->op].types;
  const DType c = nc_compute_type(k->type[1]);
  if (kind == CLASS_TO_BOOL || kind == CLASS_COUNT) return DT_i64;
  return c == DT_f32 || c == DT_f64 ? c : DT_i64;
}

/* Are the steps of x along dimensions first .. last-1 multiples of a vector? */
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

/* Are neighbouring results closer together in memory than the elements of
   one? */
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

/* Fills the offsets of the results and of the elements of one, in the units of
   the kernel: elements or vectors. */
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
            "%lld strided elements for one result are more than the GPU kernel "
            "can count",
            (long long)f->count);
    nc_hint("{0}:contiguous() first");
    return NC_EVALUE;
  }
  nc_makeoffsets(&f->folded, k->nfold, size + p->inner, 1,
                 (const int64_t(*)[NC_MAXDIM])step);
  return NC_OK;
}

/* Chooses how many threads share a result: neighbours in a warp or a whole
   block; or, if neighbouring threads take different results, so many that
   warps still read whole rows. */
static void choose_lanes(ReducePlan *p) {
  Reduction *f = &p->f;
  const int64_t units = p->way == REDUCE_ROWS && p->k->nfold == 1
                            ? f->length / p->each
                            : f->length;
  f->lanes = 1;
  if (f->beside) {
    const int wide = p->way == REDUCE_COLUMNS && f->results >= MANY_COLUMNS;
    const int64_t columns =
        floor_power2(2 * (int64_t)f->results - 1, wide ? 64 : 32);
    f->lanes = (uint32_t)floor_power2(units / 4, NC_REDUCEBLOCK / columns);
  } else if (units >= 4 * NC_REDUCEBLOCK || (units >= 128 && f->results < 64))
    f->lanes = NC_REDUCEBLOCK;
  else f->lanes = (uint32_t)floor_power2(units / 4, 32);
  while ((1u << f->shift) < f->lanes) f->shift++;
}

/* Chooses the number of pieces, from the shape alone: enough blocks, but enough
   work for each, and in kernels without partial sums not too long chains. */
static void choose_pieces(ReducePlan *p) {
  Reduction *f = &p->f;
  const int64_t columns = NC_REDUCEBLOCK / f->lanes;
  const int64_t blocks = (f->results - 1) / columns + 1;
  const int dense = p->way == REDUCE_ROWS && p->k->nfold == 1;
  const int64_t unit = dense ? p->each : 1;
  const int64_t want = p->way == REDUCE_COLUMNS ? COLUMN_BLOCKS : BLOCKS;
  int64_t pieces = want / blocks, most;
  most = f->length / (f->lanes * ROUNDS * unit);
  pieces = min64(pieces, most);
  if (p->way == REDUCE_COLUMNS) {
    int64_t chains = f->length / (f->lanes * MAX_CHAIN);
    if (pieces < chains) pieces = chains;
  }
  pieces = min64(pieces, MAX_PIECES);
  if (pieces < 1) pieces = 1;
  f->piece = (f->length - 1) / pieces + 1;
  if (dense) f->piece = (f->piece + 127) / 128 * 128;
  f->pieces = f->length > 0 ? (uint32_t)((f->length - 1) / f->piece + 1) : 1;
  if (f->pieces == 1) f->piece = f->length;
}

/* Launches the kernel for elements of type t; for single elements, the one that
   accumulates in the type for t. */
static int launch_kernel(const Device *d, const TensorIter *k, DType t,
                         ReduceKernel way, const Reduction *f) {
  static ReduceLauncher *const launcher[DT_COUNT] = { [DT_b8] = nc_reduce_u8,
#define X(t, ...) [DT_##t] = nc_reduce_##t,
                                                      NC_STOREDTYPES(X)
#undef X
  };
  if (way == REDUCE_STRIDED) {
    t = nc_compute_type(t);
    if (t != DT_f32 && t != DT_f64) t = DT_i64;
  }
  return nc_check_op_launch(d, k,
                            launcher[t](k->op, way, f, nc_current_stream(d)));
}

/* The second launch: folds the partial results of the pieces. */
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
  return launch_kernel(d, k, accumulate_type(k), REDUCE_STRIDED, &again.f);
}

static int launch(const Device *d, ReducePlan *p) {
  const TensorIter *k = p->k;
  void *part = NULL;
  int r;
  p->f.y = k->p[0];
  if (p->f.pieces > 1) {
    TRY(nc_scratch(d, &part, p->f.pieces * k->n * 8));
    p->f.y = part;
  }
  r = launch_kernel(d, k, k->type[1], p->way, &p->f);
  if (r == NC_OK && part) r = merge(d, p, part);
  nc_scratchfree(d, part);
  return r;
}

/* Can the accumulator be stored as the type of the result? */
static int stores(const TensorIter *k) {
  const DType a = accumulate_type(k), y = k->type[0];
  if (a == DT_i64) return y <= DT_i64;
  return a == DT_f64 ? y == DT_f64 : nc_compute_type(y) == DT_f32;
}

static int fold(const Device *d, const TensorIter *k) {
  ReducePlan p;
  if (!stores(k))
    return nc_fail(NC_EDTYPE, "no CUDA kernel reduces %s to %s",
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
