/* SPDX-License-Identifier: MIT */
/*
** complex_pointwise.c - pointwise operations over complex numbers on the CPU.
** A copy is one of real numbers over twice as many elements.  Else operands
** pass through blocks of the complex type, as in cpu.c, and the
** kernels of complex_kernels.c.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/tensor.h"
#include "core/cpu/cursor.h"
#include "core/cpu/kernels/kernels.h"
#include "core/pointwise/parts_iter.h"

#define GRAIN 8192 /* elements that are worth a thread */

typedef struct ComplexPlan {
  const TensorIter *k;
  PointwiseKernel f;
  DType type;           /* that is computed in */
  int slot[NC_MAXIN];   /* of each operand for the kernel */
  int bytes[NC_MAXIN];  /* is it a condition, or the result of a test? */
  int direct[NC_MAXIN]; /* is it used in place? */
  int conjugated;       /* is it a gradient, from a complex one? */
} ComplexPlan;

/*
** The parts as real numbers
*/
/* Copies elements of one type as they are. */
static int copy_bits(TensorIter *bits, const TensorIter *k) {
  if (k->op != OP_clone || k->grad_index || k->p[1] == NULL ||
      k->type[0] != k->type[1])
    return 0;
  if (k->type[0] == DT_c128) return nc_parts_iter(bits, k, DT_i64);
  *bits = *k;
  bits->type[0] = bits->type[1] = bits->common_dtype = DT_i64;
  return 1;
}

/*
** Blocks
*/
/* y[2*i] = x[i]; the imaginary parts become 0. */
#define WIDEN(name, type)                                   \
  static void name(void *dst, const void *src, int64_t n) { \
    type *y = dst;                                          \
    const type *x = src;                                    \
    for (int64_t i = 0; i < n; i++) {                       \
      y[2 * i] = x[i];                                      \
      y[2 * i + 1] = 0;                                     \
    }                                                       \
  }
WIDEN(widen_f32, float)
WIDEN(widen_f64, double)

#define NARROW(name, type)                                  \
  static void name(void *dst, const void *src, int64_t n) { \
    type *y = dst;                                          \
    const type *x = src;                                    \
    for (int64_t i = 0; i < n; i++) y[i] = x[2 * i];        \
  }
NARROW(narrow_f32, float)
NARROW(narrow_f64, double)

#define CONJUGATE(name, type)                                     \
  static void name(void *p, int64_t n) {                          \
    type *x = p;                                                  \
    for (int64_t i = 0; i < n; i++) x[2 * i + 1] = -x[2 * i + 1]; \
  }
CONJUGATE(conjugate_f32, float)
CONJUGATE(conjugate_f64, double)

static void conjugate(DType t, void *p, int64_t n) {
  if (t == DT_c128) conjugate_f64(p, n);
  else conjugate_f32(p, n);
}

/* Loads and stores of complex elements, as ConvertKernel. */
#define CONVERT(name, to, from, y_step, x_step)                           \
  static void name(void *dst, const void *src, int64_t step, int64_t n) { \
    struct {                                                              \
      to re, im;                                                          \
    } *y = dst;                                                           \
    const struct { from re, im; } *x = src;                               \
    for (int64_t i = 0; i < n; i++) {                                     \
      y[i * y_step].re = (to)x[i * x_step].re;                            \
      y[i * y_step].im = (to)x[i * x_step].im;                            \
    }                                                                     \
  }
CONVERT(load_c64_c64, float, float, 1, step)
CONVERT(load_c128_c64, float, double, 1, step)
CONVERT(load_c64_c128, double, float, 1, step)
CONVERT(load_c128_c128, double, double, 1, step)
CONVERT(store_c64_c64, float, float, step, 1)
CONVERT(store_c128_c64, double, float, step, 1)
CONVERT(store_c64_c128, float, double, step, 1)
CONVERT(store_c128_c128, double, double, step, 1)

/* Of complex elements of type t, for kernels of type c. */
static ConvertKernel converter(DType t, DType c, int store) {
  static const ConvertKernel of[2][2][2] = {
    { { load_c64_c64, store_c64_c64 }, { load_c128_c64, store_c128_c64 } },
    { { load_c64_c128, store_c64_c128 }, { load_c128_c128, store_c128_c128 } },
  };
  return of[c == DT_c128][t == DT_c128][store];
}

static void fill(DType t, char *buf, Scalar v, int64_t n) {
  const double re = nc_tofloat(v), im = nc_imag(v);
  for (int64_t i = 0; i < n; i++)
    if (t == DT_c128) ((c128_s *)buf)[i] = (c128_s){ re, im };
    else ((c64_s *)buf)[i] = (c64_s){ (float)re, (float)im };
}

/* Loads n elements of operand j at the cursor into buf. */
static void load(const ComplexPlan *p, int j, const Cursor *w, char *buf,
                 int64_t n) {
  const Kernels *kernels = nc_kernels();
  const TensorIter *k = p->k;
  const DType t = k->type[j];
  const KernelType c = p->type == DT_c128 ? CT_f64 : CT_f32;
  _Alignas(64) char real[NC_BLOCK * 8];
  if (p->bytes[j])
    nc_cursor_convert(k, j, w, 0, buf, 1, n, kernels->load[CT_u8][t], 0);
  else if (nc_is_complex(t))
    nc_cursor_convert(k, j, w, 0, buf, nc_dtypesize(p->type), n,
                      converter(t, p->type, 0), 0);
  else {
    nc_cursor_convert(k, j, w, 0, real, nc_dtypesize(p->type) / 2, n,
                      kernels->load[c][t], 0);
    if (c == CT_f64) widen_f64(buf, real, n);
    else widen_f32(buf, real, n);
  }
}

/* Stores n elements at the cursor; in a real result their real parts. */
static void store(const ComplexPlan *p, const Cursor *w, char *buf, int64_t n) {
  const Kernels *kernels = nc_kernels();
  const TensorIter *k = p->k;
  const DType t = k->type[0];
  const KernelType c = p->type == DT_c128 ? CT_f64 : CT_f32;
  if (p->bytes[0])
    nc_cursor_convert(k, 0, w, 0, buf, 1, n, kernels->store[CT_u8][t], 1);
  else if (nc_is_complex(t))
    nc_cursor_convert(k, 0, w, 0, buf, nc_dtypesize(p->type), n,
                      converter(t, p->type, 1), 1);
  else {
    if (c == CT_f64) narrow_f64(buf, buf, n);
    else narrow_f32(buf, buf, n);
    nc_cursor_convert(k, 0, w, 0, buf, nc_dtypesize(p->type) / 2, n,
                      kernels->store[c][t], 1);
  }
}

static void map_blocks(void *ctx, int64_t begin, int64_t end) {
  const ComplexPlan *p = ctx;
  const TensorIter *k = p->k;
  const int64_t size = nc_dtypesize(p->type);
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * sizeof(c128_s)];
  Cursor w;
  for (int j = 1; j < k->nargs; j++) {
    if (k->p[j]) continue;
    if (p->bytes[j]) memset(buf[j], nc_tofloat(k->number[j]) != 0, NC_BLOCK);
    else fill(p->type, buf[j], k->number[j], nc_min(end - begin, NC_BLOCK));
    if (j == 1 && p->conjugated) conjugate(p->type, buf[1], NC_BLOCK);
  }
  nc_cursor_start(&w, k, 0, k->nd, begin);
  for (int64_t i = begin, n; i < end && !nc_interrupted; i += n) {
    void *v[NC_GRADSLOTS];
    n = nc_min(end - i, NC_BLOCK);
    for (int j = 0; j < NC_GRADSLOTS; j++) v[j] = buf[0];
    for (int j = 0; j < k->nargs; j++) {
      char *at = p->direct[j] ? (char *)k->p[j] + i * size : buf[j];
      v[p->slot[j]] = at;
      if (j == 0 || k->p[j] == NULL || p->direct[j]) continue;
      load(p, j, &w, at, n);
      if (j == 1 && p->conjugated) conjugate(p->type, at, n);
    }
    p->f(n, v, k->par);
    if (p->conjugated) conjugate(p->type, v[0], n);
    if (!p->direct[0]) store(p, &w, v[0], n);
    nc_cursor_advance(&w, n);
  }
}

/* Does operand j lie as the loop goes, in the type that is computed in? */
static int is_direct(const ComplexPlan *p, int j) {
  const TensorIter *k = p->k;
  int64_t n = 1;
  if (k->p[j] == NULL || k->type[j] != p->type || p->bytes[j]) return 0;
  for (int d = 0; d < k->nd; n *= k->size[d++])
    if (k->step[j][d] != n) return 0;
  return 1;
}

/* The slots of the operands of a gradient: of g and those of a b c y that its
   text has. */
static void set_slots(ComplexPlan *p) {
  const TensorIter *k = p->k;
  int j = 2;
  unsigned used;
  for (int i = 0; i < NC_MAXIN; i++) p->slot[i] = i;
  if (k->grad_index == 0) return;
  used = nc_formula_letters(nc_opinfo[k->op].grad[k->grad_index - 1]);
  for (int i = LETTER_A; i <= LETTER_Y && j < k->nargs; i++)
    if (used >> i & 1) p->slot[j++] = i - LETTER_G + 1;
}

static int run_pointwise(const TensorIter *k) {
  const OpKind kind = nc_opinfo[k->op].kind;
  ComplexPlan p = { .k = k, .type = k->common_dtype };
  const ComplexKernels *of = &nc_kernels()->of_complex[p.type == DT_c128];
  p.f = k->grad_index ? of->gradient[k->op][k->grad_index - 1]
                      : of->pointwise[k->op];
  if (p.f == NULL) return nc_refuse_complex();
  set_slots(&p);
  p.conjugated = k->grad_index > 0 && nc_is_complex(k->type[1]);
  p.bytes[0] = (kind == TEST_OP || kind == COMPARE_OP) && k->grad_index == 0;
  if (kind == CHOOSE_OP) p.bytes[k->grad_index ? 2 : 1] = 1;
  for (int j = 0; j < k->nargs; j++)
    p.direct[j] = is_direct(&p, j) && !(j == 1 && p.conjugated);
  if (k->n > GRAIN) return nc_parallel(k->n, GRAIN, map_blocks, &p);
  map_blocks(&p, 0, k->n);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

int nc_cpu_run_complex(const TensorIter *k) {
  TensorIter bits;
  if (nc_opinfo[k->op].kind == REDUCE_OP && k->grad_index == 0)
    return nc_cpu_reduce_complex(k);
  return copy_bits(&bits, k) ? nc_cpu_run(&bits) : run_pointwise(k);
}
