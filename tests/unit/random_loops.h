/* SPDX-License-Identifier: MIT */
/*
** random_loops.h - random loops on both sides, the CPU and a CUDA device, for
** the tests of rows.
*/
#ifndef random_loops_h
#define random_loops_h

#include "tests/unit/cuda_setup.h"

#include <math.h>

#include "cuda/pointwise/launch.h"
#include "cuda/pointwise/pointwise.h"
#include "core/pointwise/scalar.h"

/* last: its `d` is a name of theirs, too */
#include "tests/unit/cuda_fixture.h"
#undef nc_fail                /* the core's again */
#undef nc_dtypesize

#define SPACE 65536           /* bytes of an operand */

static double uniform(double low, double high) {
  return low + (high - low) * (double)below(1 << 20) / (1 << 20);
}

/*
** Operands, on both sides
*/
typedef struct Twin {
  char *host;
  void *there;
  int64_t bytes;
} Twin;

static Twin twin(int64_t bytes) {
  Twin t = { malloc((size_t)bytes), NULL, bytes };
  assert_non_null(t.host);
  memset(t.host, 0, (size_t)bytes);
  ok(d->alloc(d, &t.there, bytes));
  return t;
}

static void send(const Twin *t) {
  ok(d->copy(d, t->there, t->host, t->bytes, &nc_cpu, 0));
}

static void drop(Twin *t) {
  free(t->host);
  d->free(d, t->there, t->bytes);
}

static void store(char *p, DType t, int64_t i, double v) {
  switch (t) {
    case DT_b8: ((b8_s *)p)[i].bits = v != 0; break;
    case DT_u8: ((uint8_t *)p)[i] = (uint8_t)(int64_t)v; break;
    case DT_i8: ((int8_t *)p)[i] = (int8_t)v; break;
    case DT_i16: ((int16_t *)p)[i] = (int16_t)v; break;
    case DT_i32: ((int32_t *)p)[i] = (int32_t)v; break;
    case DT_i64: ((int64_t *)p)[i] = (int64_t)v; break;
    case DT_f16: ((f16_s *)p)[i] = f16_fromfloat((float)v); break;
    case DT_bf16: ((bf16_s *)p)[i] = bf16_fromfloat((float)v); break;
    case DT_f32: ((float *)p)[i] = (float)v; break;
    default: ((double *)p)[i] = v;
  }
}

static double load(const char *p, DType t, int64_t i) {
  switch (t) {
    case DT_b8: return ((const b8_s *)p)[i].bits;
    case DT_u8: return ((const uint8_t *)p)[i];
    case DT_i8: return ((const int8_t *)p)[i];
    case DT_i16: return ((const int16_t *)p)[i];
    case DT_i32: return ((const int32_t *)p)[i];
    case DT_i64: return (double)((const int64_t *)p)[i];
    case DT_f16: return f16_tofloat(((const f16_s *)p)[i]);
    case DT_bf16: return bf16_tofloat(((const bf16_s *)p)[i]);
    case DT_f32: return ((const float *)p)[i];
    default: return ((const double *)p)[i];
  }
}

/* A number for an element: small, and now and then a strange one. */
static double number(DType t, int odd) {
  static const double strange[] = { INFINITY, -INFINITY, NAN, 0, -0.0, 1,
                                    1e-30, 70000, -3e9, 1e19, 6e-8 };
  static const double limits[] = { 0, -1, 127, -128, 255, 32767, -32768,
                                   2147483647, -2147483648.0, 9e18 };
  if (t == DT_b8) return (double)below(2);
  if (nc_category(t) == NC_INT)
    return odd && below(odd) == 0 ? limits[below(t == DT_i64 ? 10 : 9)]
                                  : (double)(below(23) - 11);
  return odd && below(odd) == 0 ? strange[below(11)] : uniform(-5, 5);
}

static void fill(Twin *t, DType type, int odd) {
  const int64_t n = t->bytes / nc_dtypesize(type);
  for (int64_t i = 0; i < n; i++) store(t->host, type, i, number(type, odd));
  send(t);
}

/*
** Loops
*/
static const DType types[] = { DT_b8,  DT_u8,  DT_i8,   DT_i16, DT_i32,
                               DT_i64, DT_f16, DT_bf16, DT_f32, DT_f64 };

/* Random sizes; n of about `most' elements at most. */
static void sizes(TensorIter *k, int nd, int64_t most) {
  static const int64_t liked[] = { 1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 64, 100 };
  k->nd = nd;
  k->n = 1;
  for (int i = 0; i < nd; i++) {
    int64_t s = nd == 1 ? 1 + below(most) : liked[below(12)];
    if (s > most / k->n) s = 1;
    k->size[i] = s;
    k->n *= s;
  }
}

/* Steps of operand j: in order or not, with gaps, repeated; gives how many
   elements they reach over. */
static int64_t anysteps(TensorIter *k, int j) {
  int order[NC_MAXDIM];
  int64_t reach = 1;
  const int permute = j > 0 && below(3) == 0, repeat = j > 0 && below(3) == 0;
  const int gaps = below(4) == 0;
  for (int i = 0; i < k->nd; i++) order[i] = i;
  for (int i = 0; permute && i < k->nd; i++) {
    const int other = (int)below(k->nd), was = order[i];
    order[i] = order[other];
    order[other] = was;
  }
  for (int i = 0; i < k->nd; i++) {
    const int at = order[i];
    int64_t step = gaps ? reach * (1 + below(2)) : reach;
    if (i == 1 && below(3) == 0) step = (step + 15) / 16 * 16;
    if (repeat && below(2)) step = 0;
    k->step[j][at] = step;
    if (step) reach = step * k->size[at];
  }
  return reach;
}

static int64_t steps(TensorIter *k, int j) {
  int64_t reach;
  do reach = anysteps(k, j);
  while (reach > SPACE / 8 - 20);
  return reach;
}

/* Lets operand j lie in t, mostly at an even address. */
static void place(TensorIter *here, TensorIter *there, int j, const Twin *t,
                  int64_t reach) {
  const int64_t size = nc_dtypesize(here->type[j]);
  const int64_t most = t->bytes / size - reach;
  const int64_t offset = below(3) ? 0 : below(most < 20 ? most + 1 : 20);
  assert_true(most >= 0);
  here->p[j] = t->host + offset * size;
  there->p[j] = (char *)t->there + offset * size;
}

/* Do both have one result?  `most' is relative to it, or to `unit'. */
static void same(const TensorIter *k, const Twin *t, double most, double unit) {
  char *back = malloc((size_t)t->bytes);
  const DType y = k->type[0];
  ok(d->tohost(d, back, t->there, t->bytes, 0));
  for (int64_t i = 0; i < t->bytes / nc_dtypesize(y); i++) {
    const double a = load(t->host, y, i), b = load(back, y, i);
    const double size = fabs(a) > unit ? fabs(a) : unit;
    if (a == b || (isnan(a) && isnan(b))) continue;
    if (fabs(a - b) <= most * size) continue;
    fail_msg("%s of %s to %s, %d dims, n %d, size %d %d, steps %d %d: "
             "element %d: %.17g is to be %.17g",
             nc_opname(k->op), nc_dtypename(k->nargs > 1 ? k->type[1] : y),
             nc_dtypename(y), k->nd, (int)k->n, (int)k->size[0],
             (int)k->size[1], (int)k->step[1][0], (int)k->step[1][1], (int)i,
             b, a);
  }
  free(back);
}

static double accuracy(DType t) {
  return t == DT_f64 ? 1e-13 : t == DT_f32 ? 4e-6 : t == DT_f16 ? 2e-3
         : t == DT_bf16 ? 1.6e-2 : 0;
}

#endif
