/* SPDX-License-Identifier: MIT */
/*
** pointwise.c - the request run for pointwise operations, their gradients,
** copies and fills: chooses a kernel by the types, strides and addresses of the
** operands, and launches it on the current stream.  Reductions go to reduce.c.
**
** Operands are read in vectors of 16 bytes where possible, otherwise element by
** element.  Copies between equal types move integers of the same size; casts
** and gradients have their own kernels.  Work that exceeds 32-bit indexing is
** split into chunks.
*/
#include "cuda/pointwise/pointwise.h"
#include "core/ops.h"

#include <string.h>

#include "cuda/pointwise/launch.h"
#include "core/pointwise/scalar.h"

#define LINE 32    /* bytes of a memory sector */
#define TILEFILL 5 /* tiles must be at least a fifth full */

const char *nc_typename(DType t) {
#define X(id, name, storage, category) name,
  static const char *const names[DT_COUNT] = { DTYPES(X) };
#undef X
  return names[t];
}

/* The storage type: bool is stored as u8. */
static DType storage_type(DType t) {
  return t == DT_b8 ? DT_u8 : t;
}

DType nc_compute_type(DType t) {
  switch (t) {
    case DT_b8:
    case DT_u8: return DT_u8;
    case DT_f16:
    case DT_bf16: return DT_f32;
    default: return t < DT_i32 ? DT_i32 : t;
  }
}

/*
** Numbers as bits
*/
/* The bits of v as an element of type t. */
static uint64_t elementbits(Scalar v, DType t) {
  const double x = nc_tofloat(v);
  const float low = (float)x;
  uint32_t word;
  uint64_t bits;
  memcpy(&word, &low, sizeof word);
  memcpy(&bits, &x, sizeof bits);
  switch (t) {
    case DT_f16: return f16_fromfloat(low).bits;
    case DT_bf16: return bf16_fromfloat(low).bits;
    case DT_f32: return word;
    case DT_f64: return bits;
    default: return (uint64_t)v.i;
  }
}

/* Eight bytes filled with that element. */
static uint64_t pattern(Scalar v, DType t) {
  uint64_t bits = elementbits(v, t);
  const int64_t size = nc_dtypesize(t);
  if (size == 1) bits = (bits & 255) * 0x0101010101010101u;
  if (size == 2) bits = (bits & 65535) * 0x0001000100010001u;
  if (size == 4) bits = (bits & 0xffffffffu) * 0x0000000100000001u;
  return bits;
}

uint64_t nc_parameterbits(double x, DType computed) {
  return elementbits((Scalar){ NC_FLOAT, { f64_toi64(x) }, x, 0 }, computed);
}

/*
** Elementwise, by vectors
*/
/* The storage type of operand j in a kernel for type t: t, or u8 for
   conditions and truth values. */
static DType kernel_type(const TensorIter *k, int j, DType t) {
  const OpKind kind = nc_opinfo[k->op].kind;
  if (k->grad_index > 0) return j == 2 && kind == CHOOSE_OP ? DT_u8 : t;
  if (j == 0 && (kind == TEST_OP || kind == COMPARE_OP)) return DT_u8;
  if (j == 1 && kind == CHOOSE_OP) return DT_u8;
  return t;
}

/* Can operand j be accessed in vectors of `each' elements of type t? */
static int vectorizes(const TensorIter *k, int j, DType t, int each) {
  const int64_t size = nc_dtypesize(t);
  if (k->p[j] == NULL) return 1;
  if (storage_type(k->type[j]) != t) return 0;
  if (k->nd == 0 || (k->step[j][0] == 0 && j > 0)) return 1;
  if (k->step[j][0] != 1) return 0;
  for (int d = 1; d < k->nd; d++)
    if (k->step[j][d] % each != 0) return 0;
  return (k->nd == 1 && k->n < each) ||
         (uintptr_t)k->p[j] % (uintptr_t)(each * size) == 0;
}

/* Fills m if all operands can be accessed in vectors; else returns 0. */
static int plan_vectors(VectorMap *m, const TensorIter *k) {
  const DType t = storage_type(k->common_dtype);
  const int each = (int)(NC_VECTOR / nc_dtypesize(t));
  int64_t size[NC_MAXDIM], step[NC_MAXIN][NC_MAXDIM];
  if (k->nd > 1 && k->size[0] % each != 0) return 0;
  for (int j = 0; j < k->nargs; j++)
    if (!vectorizes(k, j, kernel_type(k, j, t), each)) return 0;
  memset(m, 0, sizeof *m);
  m->n = (uint32_t)(k->n / each);
  m->tail = (uint32_t)(k->n % each);
  m->truth = k->type[0] == DT_b8;
  for (int j = 0; j < k->nargs; j++) {
    m->p[j] = k->p[j];
    if (k->p[j] == NULL)
      m->number[j] = pattern(k->number[j], kernel_type(k, j, t));
    else if (k->nd > 0 && k->step[j][0] == 0) m->still |= 1u << j;
    memcpy(step[j], k->step[j], sizeof step[j]);
    step[j][0] *= each;
  }
  if (k->nd <= 1) return 1;
  memcpy(size, k->size, sizeof size);
  size[0] /= each;
  nc_makeoffsets(&m->at, k->nd, size, k->nargs,
                 (const int64_t(*)[NC_MAXDIM])step);
  return 1;
}

static PointwiseLauncher *const launcher[DT_COUNT] = {
#define X(t, ...) [DT_##t] = nc_pointwise_##t,
  NC_STOREDTYPES(X)
#undef X
};

/*
** Elementwise, one by one
*/
/* The dimension along which operand j has its smallest stride, if that is not
   dimension 0 and tiles are worthwhile; otherwise 0. */
static int fastest_dim(const TensorIter *k, int j) {
  int at = 0;
  for (int d = 1; d < k->nd; d++)
    if (k->step[j][d] > 0 && k->step[j][d] < k->step[j][at]) at = d;
  if (at == 0 || k->step[j][0] < 8 || k->size[0] < 8 || k->size[at] < 8)
    return 0;
  return at;
}

/* The largest power of two up to `most' that divides n; 0 if it is below 4. */
static int64_t common_power2(int64_t n, int64_t most) {
  while (n % most != 0) most /= 2;
  return most < 4 ? 0 : most;
}

/*
** Reorders dimensions if the operands are contiguous along different ones.  A
** warp that handles adjacent elements of the result would read one memory
** sector for each element of an operand that is contiguous along another
** dimension.  So both dimensions are split and their inner parts become
** dimensions 0 and 1: a block then handles a patch in which all operands use
** whole sectors.  Leaves k unchanged if that does not apply.
*/
static void tile_dims(TensorIter *k) {
  TensorIter p = *k;
  int at = 0, of = 0, nd = 3;
  int64_t wide, high;
  if (k->nd < 2 || k->nd + 2 > NC_MAXDIM) return;
  while (at == 0 && ++of < k->nargs)
    if (k->p[of]) at = fastest_dim(k, of);
  if (at == 0) return;
  wide = common_power2(k->size[0], LINE / nc_dtypesize(k->type[0]));
  if (wide == 0) return;
  high = 2 * LINE / nc_dtypesize(k->type[of]);
  if (high > NC_ROWBLOCK * NC_EACH / wide) high = NC_ROWBLOCK * NC_EACH / wide;
  if ((high = common_power2(k->size[at], high)) == 0) return;
  p.size[0] = wide;
  p.size[1] = high;
  p.size[2] = k->size[0] / wide;
  for (int d = 1; d < k->nd; d++)
    p.size[nd++] = d == at ? k->size[d] / high : k->size[d];
  p.nd = nd;
  for (int j = 0; j < k->nargs; j++) {
    p.step[j][0] = k->step[j][0];
    p.step[j][1] = k->step[j][at];
    p.step[j][2] = k->step[j][0] * wide;
    for (int d = 1; d < k->nd; d++)
      p.step[j][d + 2] = d == at ? k->step[j][d] * high : k->step[j][d];
  }
  if (nc_fitsoffsets(p.nd, p.size, p.nargs,
                     (const int64_t(*)[NC_MAXDIM])p.step))
    *k = p;
}

static void plan_strided(StridedMap *m, const TensorIter *k) {
  const DType c = nc_compute_type(k->common_dtype);
  memset(m, 0, sizeof *m);
  m->n = (uint32_t)k->n;
  m->common_dtype = (int32_t)k->common_dtype;
  for (int j = 0; j < k->nargs; j++) {
    m->p[j] = k->p[j];
    m->type[j] = (int32_t)k->type[j];
    if (k->p[j] == NULL) m->number[j] = elementbits(k->number[j], c);
    if (k->type[j] != k->common_dtype && kernel_type(k, j, c) == c &&
        k->common_dtype != c)
      m->via |= 1u << j;
  }
  nc_makeoffsets(&m->at, k->nd, k->size, k->nargs, k->step);
}

/* A launcher returns cudaErrorInvalidDeviceFunction if it has no kernel for the
   operation.  CUDA returns the same error if a kernel has no code for the
   device, but then also records it as its last error. */
int nc_check_op_launch(const Device *d, const TensorIter *k, cudaError_t e) {
  if (e == cudaErrorInvalidDeviceFunction &&
      cudaPeekAtLastError() == cudaSuccess)
    return nc_fail(NC_EDTYPE, "this build has no CUDA kernel of it for %s",
                   nc_typename(k->common_dtype));
  CUDA_TRY(e);
  return nc_check_launch(d, nc_opinfo[k->op].name);
}

static cudaError_t launchstrided(const TensorIter *k, const StridedMap *m,
                                 cudaStream_t stream) {
  const DType c = nc_compute_type(k->common_dtype);
  if (k->grad_index == 0) return launcher[c](k->op, NULL, m, stream);
  return (c == DT_f64 ? nc_gradients_f64
                      : nc_gradients_f32)(k->op, k->grad_index, m, stream);
}

/* Runs a pointwise operation or gradient within the limits of Offsets. */
static int map(const Device *d, const TensorIter *k) {
  VectorMap v;
  StridedMap s;
  TensorIter one;
  cudaStream_t stream = nc_current_stream(d);
  const DType t = storage_type(k->common_dtype),
              c = nc_compute_type(k->common_dtype);
  for (int j = 0; j < k->nargs; j++) nc_record_use(d, k->p[j]);
  if (k->grad_index == 0 && plan_vectors(&v, k)) {
    for (int j = 0; j < 2; j++) v.par[j] = nc_parameterbits(k->par[j], c);
    return nc_check_op_launch(d, k, launcher[t](k->op, &v, NULL, stream));
  }
  one = *k;
  tile_dims(&one);
  plan_strided(&s, &one);
  for (int j = 0; j < 2; j++) s.par[j] = nc_parameterbits(k->par[j], c);
  return nc_check_op_launch(d, k, launchstrided(k, &s, stream));
}

/*
** Copies
*/
static DType integerof(int64_t size) {
  return size == 1 ? DT_u8 : size == 2 ? DT_i16 : size == 4 ? DT_i32 : DT_i64;
}

/* Turns a copy into one of half as many elements of twice the size, if
   alignment and strides allow it. */
static int widen(TensorIter *k) {
  const int64_t size = nc_dtypesize(k->common_dtype);
  if (size == 8 || k->nd == 0 || k->size[0] % 2 != 0) return 0;
  for (int j = 0; j < 2; j++) {
    if (k->step[j][0] != 1 || (uintptr_t)k->p[j] % (uintptr_t)(2 * size) != 0)
      return 0;
    for (int d = 1; d < k->nd; d++)
      if (k->step[j][d] % 2 != 0) return 0;
  }
  k->n /= 2;
  k->size[0] /= 2;
  for (int j = 0; j < 2; j++) {
    for (int d = 1; d < k->nd; d++) k->step[j][d] /= 2;
    k->type[j] = integerof(2 * size);
  }
  k->common_dtype = integerof(2 * size);
  return 1;
}

/* Can a transposing copy of elements of 1 or 2 bytes move words of 4 bytes? */
static int words_fit(const TensorIter *k, int along, int size) {
  if (size > 2 || k->step[0][0] != 1 || k->step[1][along] != 1) return 0;
  for (int j = 0; j < 2; j++) {
    const int fast = j == 0 ? 0 : along;
    uint64_t all = (uintptr_t)k->p[j] | (uint64_t)(k->size[fast] * size);
    for (int d = 0; d < k->nd; d++)
      if (d != fast) all |= (uint64_t)(k->step[j][d] * size);
    if (all % 4 != 0) return 0;
  }
  return 1;
}

/* Are the tiles full enough?  In a nearly empty tile most threads are idle. */
static int fills_tiles(const TensorIter *k, int along) {
  const int size = (int)nc_dtypesize(k->common_dtype);
  const int64_t side = nc_tile(size, words_fit(k, along, size));
  const int64_t wide = (k->size[0] + side - 1) / side * side;
  const int64_t high = (k->size[along] + side - 1) / side * side;
  return (double)k->size[0] * (double)k->size[along] * TILEFILL >=
         (double)wide * (double)high;
}

/* A copy by tiles: y is contiguous along dimension 0, x along `along'. */
static int transpose(const Device *d, const TensorIter *k, int along) {
  const int size = (int)nc_dtypesize(k->common_dtype), dim[2] = { 0, along };
  int64_t rest[NC_MAXDIM], step[2][NC_MAXDIM], batches = 1;
  int nd = 0;
  Transpose t;
  memset(&t, 0, sizeof t);
  t.x = k->p[1];
  t.y = k->p[0];
  t.words = words_fit(k, along, size);
  for (int i = 0; i < 2; i++) {
    t.size[i] = (uint32_t)k->size[dim[i]];
    t.ystep[i] = (uint64_t)k->step[0][dim[i]];
    t.xstep[i] = (uint64_t)k->step[1][dim[i]];
    t.tiles[i] = nc_divisor((k->size[dim[i]] - 1) / nc_tile(size, t.words) + 1);
  }
  for (int i = 1; i < k->nd; i++) {
    if (i == along) continue;
    rest[nd] = k->size[i];
    step[0][nd] = k->step[0][i];
    step[1][nd++] = k->step[1][i];
    batches *= k->size[i];
  }
  nc_makeoffsets(&t.rest, nd, rest, 2, (const int64_t(*)[NC_MAXDIM])step);
  return nc_check_op_launch(
      d, k, nc_transposes(size, &t, (uint32_t)batches, nc_current_stream(d)));
}

/* A copy between equal types, or a fill with a number. */
static int move(const Device *d, const TensorIter *iter) {
  TensorIter k = *iter;
  const int64_t size = nc_dtypesize(k.type[0]);
  int along;
  if (k.p[1] == NULL)
    k.number[1] = (Scalar){
      NC_INT, { (int64_t)elementbits(k.number[1], k.type[0]) }, 0, 0
    };
  k.common_dtype = k.type[0] = k.type[1] = integerof(size);
  if (k.p[1] == NULL) return map(d, &k);
  nc_record_use(d, k.p[0]);
  nc_record_use(d, k.p[1]);
  if (k.nd == 0 || (k.nd == 1 && k.step[0][0] == 1 && k.step[1][0] == 1)) {
    CUDA_TRY(cudaMemcpyAsync(k.p[0], k.p[1], (size_t)(k.n * size),
                             cudaMemcpyDeviceToDevice, nc_current_stream(d)));
    return nc_check_launch(d, nc_opinfo[k.op].name);
  }
  if ((along = fastest_dim(&k, 1)) != 0 && fills_tiles(&k, along))
    return transpose(d, &k, along);
  while (widen(&k)) continue;
  return map(d, &k);
}

/* Is p aligned for groups of NC_CASTWIDTH elements? */
static int aligned(const void *p, DType t) {
  return (uintptr_t)p % (uintptr_t)(NC_CASTWIDTH * nc_dtypesize(t)) == 0 ||
         (uintptr_t)p % NC_VECTOR == 0;
}

static int cast(const Device *d, const TensorIter *k) {
  const int storage = nc_is_storage(k->type[0]) || nc_is_storage(k->type[1]);
  Cast c;
  memset(&c, 0, sizeof c);
  c.y = k->p[0];
  c.x = k->p[1];
  c.n = (uint32_t)k->n;
  nc_record_use(d, k->p[0]);
  nc_record_use(d, k->p[1]);
  c.dense =
      !storage &&
      (k->nd == 0 || (k->nd == 1 && k->step[0][0] == 1 && k->step[1][0] == 1 &&
                      aligned(c.y, k->type[0]) && aligned(c.x, k->type[1])));
  if (c.dense) {
    c.n = (uint32_t)(k->n / NC_CASTWIDTH);
    c.tail = (uint32_t)(k->n % NC_CASTWIDTH);
  } else {
    TensorIter one = *k;
    tile_dims(&one);
    nc_makeoffsets(&c.at, one.nd, one.size, 2,
                   (const int64_t(*)[NC_MAXDIM])one.step);
  }
  return nc_check_op_launch(
      d, k,
      (storage ? nc_storage_casts : nc_casts)((int)k->type[1], (int)k->type[0],
                                              &c, nc_current_stream(d)));
}

/*
** Choice of the path, and chunks
*/
/* *y = operand j of iter, converted to type t in scratch memory; k has it in
   place of the former. */
static int convert_operand(const Device *d, TensorIter *k, int j, DType t,
                           void **y) {
  TensorIter c = *k;
  int64_t n = 1;
  c.op = OP_clone;
  c.grad_index = 0;
  c.common_dtype = t;
  c.nargs = 2;
  c.nd = 0;
  for (int i = 0; i < k->nd; i++) {
    if (k->step[j][i] == 0) continue;
    c.size[c.nd] = k->size[i];
    c.step[1][c.nd] = k->step[j][i];
    k->step[j][i] = c.step[0][c.nd++] = n;
    n *= c.size[c.nd - 1];
  }
  TRY(nc_scratch(d, y, n * nc_dtypesize(t)));
  c.n = n;
  c.p[0] = *y;
  c.p[1] = k->p[j];
  c.type[0] = t;
  c.type[1] = k->type[j];
  k->p[j] = *y;
  k->type[j] = t;
  return nc_cuda_run(d, &c);
}

int nc_with_operands(const Device *d, const TensorIter *iter,
                     const DType want[],
                     int (*f)(const Device *d, const TensorIter *k)) {
  TensorIter k = *iter;
  void *scratch[NC_MAXIN] = { NULL };
  int r = NC_OK;
  for (int j = 1; j < k.nargs && r == NC_OK; j++)
    if (k.p[j] && k.type[j] != want[j])
      r = convert_operand(d, &k, j, want[j], &scratch[j]);
  if (r == NC_OK) r = f(d, &k);
  for (int j = 1; j < NC_MAXIN; j++) nc_scratchfree(d, scratch[j]);
  return r;
}

/* Runs one chunk.  Kernels that compute in f32 cannot read f64; such an operand
   is never large. */
static int run(const Device *d, const TensorIter *k) {
  DType want[NC_MAXIN];
  int wide = 0;
  if (k->op == OP_clone && k->grad_index == 0)
    return k->p[1] == NULL || k->type[0] == k->type[1] ? move(d, k)
                                                       : cast(d, k);
  for (int j = 1; j < k->nargs; j++) {
    const int is = k->p[j] && k->type[j] == DT_f64 &&
                   nc_compute_type(k->common_dtype) == DT_f32;
    want[j] = is ? DT_f32 : k->type[j];
    wide |= is;
  }
  return wide ? nc_with_operands(d, k, want, map) : map(d, k);
}

/* The part of k with the indices first .. first+n-1 of dimension dim. */
static TensorIter part(const TensorIter *k, int dim, int64_t first, int64_t n) {
  TensorIter p = *k;
  p.n = k->n / k->size[dim] * n;
  p.size[dim] = n;
  for (int j = 0; j < k->nargs; j++)
    if (k->p[j])
      p.p[j] =
          (char *)k->p[j] + first * k->step[j][dim] * nc_dtypesize(k->type[j]);
  return p;
}

/* The dimension to split: one with a stride above the limit, or else the
   largest. */
static int dim_to_cut(const TensorIter *k, int dims) {
  int at = 0;
  for (int i = 1; i < dims; i++)
    if (k->size[i] > k->size[at]) at = i;
  for (int i = 0; i < dims; i++)
    for (int j = 0; k->size[i] > 1 && j < k->nargs; j++)
      if (k->step[j][i] >> 32) at = i;
  return at;
}

typedef struct Chunks {
  const Device *d;
  int dims;
  int (*f)(const Device *d, const TensorIter *k);
  int some; /* has one of them been launched? */
} Chunks;

/* Runs one chunk.  A chunk that fails has changed nothing.  But once another
   chunk was launched, the caller cannot repeat the whole operation after
   freeing memory, so this retries the chunk itself; if it still fails, the
   error says that the result is partial. */
static int piece(Chunks *w, const TensorIter *k) {
  int r = w->f(w->d, k);
  if (r == NC_ENOMEM && w->some) {
    w->d->trim(w->d, 0);
    r = w->f(w->d, k);
  }
  if (r != NC_OK && w->some) nc_error_partial();
  w->some |= r == NC_OK;
  return r;
}

/* Splits k in halves until they are small enough. */
static int pieces(Chunks *w, const TensorIter *k) {
  int dim;
  int64_t half;
  TensorIter p;
  if (nc_fitsoffsets(w->dims, k->size, k->nargs, k->step)) return piece(w, k);
  dim = dim_to_cut(k, w->dims);
  half = k->size[dim] / 2;
  if (half > 64) half -= half % 64; /* vectors stay aligned */
  p = part(k, dim, 0, half);
  TRY(pieces(w, &p));
  p = part(k, dim, half, k->size[dim] - half);
  return pieces(w, &p);
}

int nc_in_chunks(const Device *d, const TensorIter *k, int dims,
                 int (*f)(const Device *d, const TensorIter *k)) {
  Chunks w = { d, dims, f, 0 };
  return pieces(&w, k);
}

int nc_cuda_run(const Device *d, const TensorIter *k) {
  if (k->common_dtype == DT_c64 || k->common_dtype == DT_c128)
    return nc_run_complex(d, k);
  if (nc_opinfo[k->op].kind == REDUCE_OP && k->grad_index == 0)
    return nc_runreduce(d, k);
  return nc_in_chunks(d, k, k->nd, run);
}
