/* SPDX-License-Identifier: MIT */
/*
** cpu.c - the request `run' of the CPU for pointwise operations.  Reductions
** are in reduce.c, the table of all requests is in cpu_device.c.
**
** A kernel computes on dense memory in one of five types.  An operand that is
** strided, or of another dtype, passes through a buffer of NC_BLOCK elements
** that stays in the L1 cache: so there is one loop for each operation and type,
** and a conversion costs no pass over memory.
*/
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/ops.h"
#include "core/op.h"
#include "core/tape.h"
#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"
#include "core/tensor.h"
#include "core/cpu/cursor.h"

#define GRAIN 32768 /* elements that are worth a thread */

KernelType nc_kernel_type(DType t) {
  static const KernelType of[DT_COUNT] = {
#define X(id, name, storage, category)             \
  [DT_##id] = NC_VALUE_BITS(storage) > 31 ? CT_i64 \
              : DT_##id == DT_u8          ? CT_u8  \
                                          : CT_i32,
    INTEGERS(X) STORAGE_INTEGERS(X)
#undef X
#define X(id, ...) [DT_##id] = CT_f32,
        STORAGE_FLOATS(X)
#undef X
            [DT_b8] = CT_u8,
    [DT_f16] = CT_f32,
    [DT_bf16] = CT_f32,
    [DT_f32] = CT_f32,
    [DT_f64] = CT_f64,
  };
  return of[t];
}

DType nc_kernel_dtype(KernelType c) {
  static const DType of[CT_COUNT] = { DT_u8, DT_i32, DT_i64, DT_f32, DT_f64 };
  return of[c];
}

int nc_matches_kernel(DType t, KernelType c) {
  return t == nc_kernel_dtype(c) || (t == DT_b8 && c == CT_u8);
}

/*
** Pointwise operations
*/
enum { BURST = 256 }; /* elements that are written past the cache at once */

typedef struct PointwisePlan {
  const TensorIter *k;
  PointwiseKernel f;
  ConvertKernel convert[NC_MAXIN]; /* NULL: the operand is used in place */
  int64_t size[NC_MAXIN];          /* of an element, for the kernel */
  KernelType c[NC_MAXIN];
  int rounds[NC_MAXIN];    /* see round_to_common_dtype */
  int direct;              /* no operand needs a buffer */
  int copies;              /* the operation leaves the values as they are */
  int rows;                /* see map_rows */
  int in_rows[NC_MAXIN];   /* is the operand used in place in its rows? */
  int64_t widest;          /* elements of a row that are worked on at once */
  int grad_slot[NC_MAXIN]; /* see set_grad_slots */
} PointwisePlan;

/* Is every result 0 or 1, so that it can be written to a bool tensor without
   a conversion? */
static int result_is_bool(const OpInfo *info, const TensorIter *k) {
  return info->kind == TEST_OP || info->kind == COMPARE_OP ||
         info->kind == CHOOSE_OP || info->types == CLASS_INT_OR_BOOL ||
         (k->op == OP_clone && k->type[1] == DT_b8);
}

/* A gradient's kernel takes all of y g a b c; the loop has only those that the
   formula uses.  Sets which one each operand of the loop is. */
static void set_grad_slots(PointwisePlan *p, const char *text) {
  const unsigned used = nc_formula_letters(text);
  int j = 2;
  p->grad_slot[0] = 0;
  p->grad_slot[1] = 1;
  for (int i = LETTER_A; i <= LETTER_Y && j < p->k->nargs; i++)
    if (used >> i & 1) p->grad_slot[j++] = i - LETTER_G + 1;
}

/* Calls the kernel for n elements.  Operands that a gradient's formula does not
   use may have any address. */
static void call_kernel(const PointwisePlan *p, int64_t n, void *v[]) {
  void *all[NC_GRADSLOTS];
  if (p->k->grad_index == 0) {
    p->f(n, v, p->k->par);
    return;
  }
  for (int i = 0; i < NC_GRADSLOTS; i++) all[i] = v[0];
  for (int j = 0; j < p->k->nargs; j++) all[p->grad_slot[j]] = v[j];
  p->f(n, all, p->k->par);
}

/* Is it worth going along the innermost dimension (map_rows)? Only if the
   operands that rows use in place save more than short rows cost. */
static int worth_rows(const PointwisePlan *p) {
  enum { LEAST = 8, LEAST_REPEATED = 256, LEAST_CONVERTED = 256 };
  const TensorIter *k = p->k;
  int least = LEAST;
  if (k->nd < 2 || !p->in_rows[0]) return 0;
  if (p->copies && p->in_rows[1]) least = 2;
  for (int j = 1; j < k->nargs; j++)
    if (k->p[j] != NULL && !p->in_rows[j] && !p->copies &&
        least < LEAST_CONVERTED)
      least = k->step[j][0] == 0 ? LEAST_REPEATED : LEAST_CONVERTED;
  return k->size[0] >= least;
}

/* Copies the two bytes of each element unchanged: no kernel has their types. */
static void load_two_bytes(void *dst, const void *src, int64_t step,
                           int64_t n) {
  nc_copy_strided(dst, 2, src, step * 2, n, 2);
}

static void store_two_bytes(void *dst, const void *src, int64_t step,
                            int64_t n) {
  nc_copy_strided(dst, step * 2, src, 2, n, 2);
}

/* Does operand j lie in the order of the loop, without gaps? */
static int is_flat(const TensorIter *k, int j) {
  int64_t n = 1;
  for (int d = 0; d < k->nd; n *= k->size[d++])
    if (k->step[j][d] != n) return 0;
  return 1;
}

static void make_plan(PointwisePlan *p, const TensorIter *k) {
  const Kernels *kernels = nc_kernels();
  const OpInfo *info = &nc_opinfo[k->op];
  const KernelType c = nc_kernel_type(k->common_dtype);
  const int is_test = info->kind == TEST_OP || info->kind == COMPARE_OP;
  int condition = info->kind == CHOOSE_OP ? 1 : -1;
  p->k = k;
  p->copies = k->op == OP_clone && k->grad_index == 0 && k->p[1] != NULL;
  const int two_bytes =
      p->copies && k->type[0] == k->type[1] && nc_dtypesize(k->type[0]) == 2;
  p->f = kernels->pointwise[k->op][c];
  if (k->grad_index > 0) {
    p->f = kernels->pointwise_grad[k->op][k->grad_index - 1][c == CT_f64];
    condition = info->kind == CHOOSE_OP ? 2 : -1;
    set_grad_slots(p, info->grad[k->grad_index - 1]);
  }
  p->direct = k->nd <= 1;
  p->widest = INT64_MAX;
  for (int j = 0; j < k->nargs; j++) {
    int in_place, usable;
    KernelType own = c;
    if ((j == 0 && is_test) || j == condition) own = CT_u8;
    p->rounds[j] = j > 0 && own == c && k->type[j] != k->common_dtype &&
                   nc_dtypesize(k->common_dtype) <= 2 &&
                   k->common_dtype >= DT_i8;
    usable =
        k->p[j] != NULL && nc_matches_kernel(k->type[j], own) && !p->rounds[j];
    if (j == 0 && k->type[0] == DT_b8)
      usable = usable && result_is_bool(info, k);
    if (two_bytes) usable = 1, p->rounds[j] = 0;
    p->in_rows[j] = usable && k->nd > 0 && k->step[j][0] == 1;
    in_place = usable && is_flat(k, j);
    if (!p->in_rows[j]) p->widest = NC_BLOCK;
    p->c[j] = own;
    p->size[j] = two_bytes ? 2 : nc_dtypesize(nc_kernel_dtype(own));
    p->convert[j] = in_place    ? NULL
                    : two_bytes ? (j == 0 ? store_two_bytes : load_two_bytes)
                    : j == 0    ? kernels->store[own][k->type[0]]
                                : kernels->load[own][k->type[j]];
    p->direct &= in_place;
  }
  p->rows = worth_rows(p);
}

/* Rounds operand j to the dtype the operation works in where the kernel
   computes in a wider type: an int32 of 100000 is inf in float16. */
static void round_to_common_dtype(const PointwisePlan *p, int j, char *buf,
                                  int64_t n) {
  const Kernels *kernels = nc_kernels();
  _Alignas(64) char narrow[NC_BLOCK * 2];
  kernels->store[p->c[j]][p->k->common_dtype](narrow, buf, 1, n);
  kernels->load[p->c[j]][p->k->common_dtype](buf, narrow, 1, n);
}

void nc_fill_number(char *buf, KernelType c, Scalar v, int64_t n) {
  const uint8_t byte = v.kind == NC_FLOAT ? v.f != 0 : (uint8_t)v.i;
  for (int64_t i = 0; i < n; i++) switch (c) {
      case CT_u8: ((uint8_t *)buf)[i] = byte; break;
      case CT_i32: ((int32_t *)buf)[i] = (int32_t)v.i; break;
      case CT_i64: ((int64_t *)buf)[i] = v.i; break;
      case CT_f32: ((float *)buf)[i] = (float)nc_tofloat(v); break;
      default: ((double *)buf)[i] = nc_tofloat(v);
    }
}

static void map_dense(void *ctx, int64_t begin, int64_t end) {
  const PointwisePlan *p = ctx;
  void *v[NC_MAXIN] = { NULL };
  for (int j = 0; j < p->k->nargs; j++)
    v[j] = (char *)p->k->p[j] + begin * p->size[j];
  if (p->copies) memmove(v[0], v[1], (size_t)((end - begin) * p->size[0]));
  else call_kernel(p, end - begin, v);
}

/* As map_dense, but writes the result past the cache, in short bursts. */
static void map_streaming(void *ctx, int64_t begin, int64_t end) {
  const PointwisePlan *p = ctx;
  const Kernels *kernels = nc_kernels();
  _Alignas(64) char buf[BURST * 8];
  void *v[NC_MAXIN] = { NULL };
  v[0] = buf;
  for (int64_t i = begin; i < end; i += BURST) {
    const int64_t n = nc_min(end - i, BURST);
    for (int j = 1; j < p->k->nargs; j++)
      v[j] = (char *)p->k->p[j] + i * p->size[j];
    if (p->copies) memcpy(buf, v[1], (size_t)(n * p->size[0]));
    else call_kernel(p, n, v);
    kernels->stream((char *)p->k->p[0] + i * p->size[0], buf, n * p->size[0]);
  }
  kernels->fence();
}

/* Is the result, dense, too large for the cache, and no operand overwritten? */
static int should_stream(const PointwisePlan *p) {
  const TensorIter *k = p->k;
  int apart = p->convert[0] == NULL && k->n * p->size[0] >= NC_STREAM_BYTES &&
              (uintptr_t)k->p[0] % 64 == 0;
  for (int j = 1; j < k->nargs; j++) apart &= k->p[j] != k->p[0];
  return apart && (p->direct || (p->rows && !p->copies));
}

/* Fills the buffers of the operands that are numbers. */
static void fill_numbers(const PointwisePlan *p, char buf[][NC_BLOCK * 8],
                         int64_t n) {
  for (int j = 1; j < p->k->nargs; j++)
    if (p->k->p[j] == NULL)
      nc_fill_number(buf[j], p->c[j], p->k->number[j], nc_min(n, NC_BLOCK));
}

/* Is operand j one element for all results, which a buffer keeps? */
static int is_one_element(const PointwisePlan *p, int j) {
  int64_t steps = 0;
  for (int d = 0; d < p->k->nd; d++) steps |= p->k->step[j][d];
  return steps == 0 && !p->copies;
}

static void map_blocks(void *ctx, int64_t begin, int64_t end) {
  const PointwisePlan *p = ctx;
  const TensorIter *k = p->k;
  const int load_in_place = p->copies && !p->convert[0];
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * 8];
  void *v[NC_MAXIN] = { NULL };
  int kept[NC_MAXIN];
  Cursor w;
  fill_numbers(p, buf, end - begin);
  for (int j = 0; j < k->nargs; j++) kept[j] = is_one_element(p, j);
  nc_cursor_start(&w, k, 0, k->nd, begin);
  for (int64_t i = begin; i < end; i += NC_BLOCK) {
    const int64_t n = nc_min(end - i, NC_BLOCK);
    for (int j = 0; j < k->nargs; j++) {
      const int buffered = p->convert[j] || !k->p[j];
      v[j] = buffered ? buf[j] : (char *)k->p[j] + i * p->size[j];
      if (j > 0 && load_in_place) v[j] = v[0];
      if (kept[j] && i > begin) continue;
      if (j > 0 && p->convert[j] && k->p[j])
        nc_cursor_convert(k, j, &w, 0, v[j], p->size[j], n, p->convert[j], 0);
      if (p->rounds[j] && k->p[j]) round_to_common_dtype(p, j, v[j], n);
    }
    if (p->copies) v[0] = v[1];
    else call_kernel(p, n, v);
    if (p->convert[0])
      nc_cursor_convert(k, 0, &w, 0, v[0], p->size[0], n, p->convert[0], 1);
    nc_cursor_advance(&w, n);
  }
}

/* Repeats the first element of buf n times, by a kernel: what a narrower store
   has written is loaded late. */
static void repeat(char *buf, KernelType c, int64_t n) {
  char value[8];
  memcpy(value, buf, sizeof value);
  nc_kernels()->load[c][nc_kernel_dtype(c)](buf, value, 0, n);
}

/* The element of operand j at the cursor. */
static char *operand_at(const TensorIter *k, int j, const Cursor *w) {
  return (char *)k->p[j] + nc_cursor_offset(w, j) * nc_dtypesize(k->type[j]);
}

/* Operand j of a row of n elements that begins at *x, in *buf if it cannot be
   used in place.  A number of another row is repeated there once: *repeated is
   the one that is there. */
static void *row_operand(const PointwisePlan *p, int j, char *x, char *buf,
                         const void **repeated, int64_t n) {
  const int64_t step = p->k->step[j][0];
  if (p->in_rows[j]) return x;
  if (step == 0 && *repeated == x) return buf;
  *repeated = step == 0 ? x : NULL;
  p->convert[j](buf, x, step, step == 0 ? 1 : n);
  if (p->rounds[j]) round_to_common_dtype(p, j, buf, step == 0 ? 1 : n);
  if (step == 0) repeat(buf, p->c[j], nc_min(p->widest, p->k->size[0]));
  return buf;
}

/* Copies whole rows from the cursor on, at most n elements, in one call, as far
   as the second dimension goes.  Returns how many elements; 0: not possible. */
static int64_t copy_rows(const PointwisePlan *p, const Cursor *w, int64_t n) {
  const TensorIter *k = p->k;
  const int64_t size = p->size[0], bytes = k->size[0] * size;
  const int64_t rows = nc_min(k->size[1] - w->index[1], n / k->size[0]);
  char *y, *x;
  if (!p->copies || !p->in_rows[1] || w->index[0] != 0 || rows < 2) return 0;
  y = (char *)k->p[0] + nc_cursor_offset(w, 0) * size;
  x = (char *)k->p[1] + nc_cursor_offset(w, 1) * size;
  if (bytes <= 64 || size < 4)
    nc_copy_rows(y, k->step[0][1] * size, x, k->step[1][1] * size, rows, bytes);
  else
    nc_kernels()->row[size == 8].copy_rows(y, k->step[0][1], x, k->step[1][1],
                                           rows, k->size[0]);
  return rows * k->size[0];
}

/* Runs whole rows from the cursor on, as copy_rows does: their operands begin a
   step from each other, which saves the cursor's arithmetic.  v[] has the
   buffers of the operands that are numbers; repeated[] says what buf[] holds
   (see row_operand). */
static int64_t map_whole_rows(const PointwisePlan *p, const Cursor *w,
                              char buf[][NC_BLOCK * 8], const void *repeated[],
                              void *v[], int64_t n) {
  const TensorIter *k = p->k;
  const int64_t rows = nc_min(k->size[1] - w->index[1], n / k->size[0]);
  char *x[NC_MAXIN];
  int64_t step[NC_MAXIN];
  if (p->copies || w->index[0] != 0 || rows < 2 || k->size[0] > p->widest)
    return 0;
  for (int j = 0; j < k->nargs; j++) {
    x[j] = operand_at(k, j, w);
    step[j] = k->step[j][1] * nc_dtypesize(k->type[j]);
  }
  for (int64_t r = 0; r < rows; r++) {
    for (int j = 0; j < k->nargs; j++) {
      if (k->p[j] == NULL) continue;
      v[j] = row_operand(p, j, x[j], buf[j], &repeated[j], k->size[0]);
      x[j] += step[j];
    }
    call_kernel(p, k->size[0], v);
  }
  return rows * k->size[0];
}

/* For operands of several dimensions of which the innermost is long: goes along
   it in runs, which most operands give and take in place. */
static void map_rows(void *ctx, int64_t begin, int64_t end) {
  const PointwisePlan *p = ctx;
  const TensorIter *k = p->k;
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * 8];
  const void *repeated[NC_MAXIN] = { NULL };
  void *v[NC_MAXIN];
  Cursor w;
  fill_numbers(p, buf, NC_BLOCK);
  for (int j = 0; j < NC_MAXIN; j++) v[j] = buf[j];
  nc_cursor_start(&w, k, 0, k->nd, begin);
  for (int64_t i = begin, n; i < end; i += n) {
    if ((n = copy_rows(p, &w, end - i)) > 0 ||
        (n = map_whole_rows(p, &w, buf, repeated, v, end - i)) > 0) {
      nc_cursor_advance(&w, n);
      continue;
    }
    n = nc_min(nc_min(nc_cursor_left(&w), end - i), p->widest);
    for (int j = 0; j < k->nargs; j++) {
      char *x = operand_at(k, j, &w);
      if (k->p[j] == NULL) continue;
      if (p->copies && j == 1 && !p->in_rows[1])
        p->convert[1](v[0], x, k->step[1][0], n);
      else v[j] = row_operand(p, j, x, buf[j], &repeated[j], n);
    }
    if (!p->copies) call_kernel(p, n, v);
    else if (p->in_rows[1]) memcpy(v[0], v[1], (size_t)(n * p->size[0]));
    nc_cursor_advance(&w, n);
  }
}

/* As map_rows, but writes the result past the cache, in short bursts, which may
   be of several rows. */
static void map_rows_streaming(void *ctx, int64_t begin, int64_t end) {
  const PointwisePlan *p = ctx;
  const TensorIter *k = p->k;
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * 8];
  const void *repeated[NC_MAXIN] = { NULL };
  void *v[NC_MAXIN];
  Cursor w;
  fill_numbers(p, buf, BURST);
  for (int j = 0; j < NC_MAXIN; j++) v[j] = buf[j];
  nc_cursor_start(&w, k, 0, k->nd, begin);
  for (int64_t i = begin, burst; i < end; i += burst) {
    burst = nc_min(end - i, BURST);
    for (int64_t done = 0, n; done < burst; done += n) {
      n = nc_min(nc_cursor_left(&w), burst - done);
      v[0] = buf[0] + done * p->size[0];
      for (int j = 1; j < k->nargs; j++)
        if (k->p[j] != NULL)
          v[j] =
              row_operand(p, j, operand_at(k, j, &w), buf[j], &repeated[j], n);
      call_kernel(p, n, v);
      nc_cursor_advance(&w, n);
    }
    nc_kernels()->stream((char *)k->p[0] + i * p->size[0], buf[0],
                         burst * p->size[0]);
  }
  nc_kernels()->fence();
}

/* A small loop with numbers among its operands: each number is repeated in a
   buffer.  A separate function, because of its stack frame. */
static NC_NOINLINE void run_small_numbers(const TensorIter *k, KernelType c) {
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * 8];
  void *v[NC_MAXIN];
  for (int j = 0; j < k->nargs; j++) {
    v[j] = k->p[j] ? k->p[j] : buf[j];
    if (k->p[j] == NULL) nc_fill_number(v[j], c, k->number[j], k->n);
  }
  nc_kernels()->pointwise[k->op][c](k->n, v, k->par);
}

/* Runs a loop that needs no plan and no thread: few dense elements of one
   dtype that a kernel can use in place.  Returns 0 for another loop. */
static int run_small(const TensorIter *k, OpKind kind) {
  const KernelType c = nc_kernel_type(k->common_dtype);
  if (!k->uniform || k->n > (k->numbers ? NC_BLOCK : GRAIN) || k->grad_index)
    return 0;
  if (k->op == OP_clone && !k->numbers) {
    memmove(k->p[0], k->p[1], (size_t)(k->n * nc_dtypesize(k->type[0])));
    return 1;
  }
  if (k->common_dtype != nc_kernel_dtype(c) || kind == CHOOSE_OP) return 0;
  if (k->numbers) run_small_numbers(k, c);
  else nc_kernels()->pointwise[k->op][c](k->n, k->p, k->par);
  return 1;
}

static NC_NOINLINE int run_reduction(const TensorIter *k) {
  return nc_cpu_reduce(k);
}

/* Is it the zeroing of dense memory? */
static int is_zeroing(const TensorIter *k) {
  const Scalar v = k->number[1];
  return k->op == OP_clone && k->grad_index == 0 && k->p[1] == NULL &&
         k->nd <= 1 && (k->nd == 0 || k->step[0][0] == 1) &&
         (v.kind == NC_FLOAT ? v.f == 0 && !signbit(v.f) : v.i == 0);
}

static void zero_range(void *ctx, int64_t begin, int64_t end) {
  const TensorIter *k = ctx;
  const int64_t size = nc_dtypesize(k->type[0]);
  memset((char *)k->p[0] + begin * size, 0, (size_t)((end - begin) * size));
}

/* The loop that works on dense elements as they are stored, or NULL. */
static PointwiseKernel stored_loop(const TensorIter *k) {
  if (!k->uniform || k->numbers || k->grad_index || k->nd > 1) return NULL;
  return nc_kernels()->stored[k->op][k->common_dtype];
}

/* Elements for each call of a loop over n: a part of whole blocks, as many
   parts as two or four threads can share evenly. */
static int64_t even_grain(int64_t n) {
  const int64_t parts = nc_ceil_div(nc_ceil_div(n, GRAIN), 4) * 4;
  return parts > 16 ? GRAIN : nc_ceil_div(n, parts * NC_BLOCK) * NC_BLOCK;
}

static NC_NOINLINE int run_pointwise(const TensorIter *k) {
  const PointwiseKernel stored = stored_loop(k);
  const int transposed = nc_cpu_transposed_operand(k);
  PointwisePlan p;
  void (*map)(void *, int64_t, int64_t);
  if (nc_cpu_istranspose(k)) return nc_cpu_transpose(k);
  if (nc_cpu_isrepeat(k)) return nc_cpu_repeat(k);
  if (transposed) return nc_cpu_run_transposed(k, transposed, run_pointwise);
  if (is_zeroing(k)) return nc_parallel(k->n, 8 * GRAIN, zero_range, (void *)k);
  make_plan(&p, k);
  if (stored) {
    p.f = stored;
    p.direct = 1;
    for (int j = 0; j < k->nargs; j++)
      p.size[j] = nc_dtypesize(k->common_dtype);
  }
  if (should_stream(&p))
    return nc_parallel(k->n, 8 * GRAIN,
                       p.direct ? map_streaming : map_rows_streaming, &p);
  map = p.direct ? map_dense : p.rows ? map_rows : map_blocks;
  if (k->n > GRAIN) return nc_parallel(k->n, even_grain(k->n), map, &p);
  map(&p, 0, k->n);
  return NC_OK;
}

/*
** Results of another type
*/
int nc_cpu_result(Tensor **out, const Tensor *y, DType type) {
  if (y->dtype == type) return nc_alias(out, y);
  return nc_newdense(out, &nc_cpu, type, y);
}

int nc_cpu_store_result(int r, const Tensor *y, Tensor *out) {
  if (r == NC_OK && out && out->data != y->data) r = nc_copy((Tensor *)y, out);
  nc_release(out);
  return r;
}

/* Copies halves as bits: a conversion to float32 and back would change those of
   a nan. */
static int copies_halves(const TensorIter *k) {
  const DType t = k->type[0];
  return k->op == OP_clone && k->grad_index == 0 && k->p[1] != NULL &&
         k->type[1] == t && (t == DT_f16 || t == DT_bf16);
}

int nc_cpu_run(const TensorIter *k) {
  const OpKind kind = nc_opinfo[k->op].kind;
  if (nc_is_complex(k->common_dtype)) return nc_cpu_run_complex(k);
  if (copies_halves(k)) {
    TensorIter bits = *k;
    bits.type[0] = bits.type[1] = bits.common_dtype = DT_i16;
    return nc_cpu_run(&bits);
  }
  if (kind == REDUCE_OP && k->grad_index == 0) return run_reduction(k);
  return run_small(k, kind) ? NC_OK : run_pointwise(k);
}

Scalar nc_load_element(DType t, const void *p) {
  const Kernels *k = nc_kernels();
  Scalar v = nc_int(0);
  v.kind = nc_category(t);
  if (t == DT_c64)
    return nc_complex(((const c64_s *)p)->re, ((const c64_s *)p)->im);
  if (t == DT_c128)
    return nc_complex(((const c128_s *)p)->re, ((const c128_s *)p)->im);
  if (v.kind == NC_FLOAT) k->load[CT_f64][t](&v.f, p, 1, 1);
  else k->load[CT_i64][t](&v.i, p, 1, 1);
  if (t == DT_u64 && v.i < 0) return nc_float((double)(uint64_t)v.i);
  return v;
}
