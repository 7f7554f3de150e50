/* SPDX-License-Identifier: MIT */
/*
** random_loops.h - random loops (TensorIter) on the CPU and a CUDA device, for
** the tests of pointwise operations and reductions.
*/
#ifndef random_loops_h
#define random_loops_h

/* First: the fixture's `d' is a name of theirs, too. */
#include "cuda/pointwise/launch.h"
#include "cuda/pointwise/pointwise.h"

#include "tests/unit/cuda_fixture.h"

#define SPACE 65536           /* bytes of an operand */

static double uniform(double low, double high) {
  return low + (high - low) * (double)below(1 << 20) / (1 << 20);
}

/*
** Operands, on both devices
*/
typedef struct Buffer {
  char *host;
  void *there;
  int64_t bytes;
} Buffer;

static void send(const Buffer *t) {
  ok(d->copy(d, t->there, t->host, t->bytes, &nc_cpu, 0));
}

static void clear(const Buffer *t) {
  memset(t->host, 0, (size_t)t->bytes);
  send(t);
}

static Buffer new_buffer(int64_t bytes) {
  Buffer t = { malloc((size_t)bytes), NULL, bytes };
  assert_non_null(t.host);
  ok(d->alloc(d, &t.there, bytes));
  clear(&t);
  return t;
}

static void drop(Buffer *t) {
  free(t->host);
  d->free(d, t->there, t->bytes);
}

/* A number for an element: small, and now and then (one in `odd') a strange
   one. */
static double number(DType t, int odd) {
  static const double strange[] = { INFINITY, -INFINITY, NAN, 0, -0.0, 1,
                                    1e-30, 70000, -3e9, 1e19, 6e-8 };
  static const double limits[] = { 0, -1, 127, -128, 255, 32767, -32768,
                                   2147483647, -2147483648.0, 9e18 };
  if (t == DT_b8) return (double)below(2);
  if (nc_category(t) == NC_INT)
    return odd && below(odd) == 0 ? limits[below(t == DT_i64 ? 10 : 9)]
                                  : (double)(below(23) - 11);
  return odd && below(odd) == 0 ? ANYOF(strange) : uniform(-5, 5);
}

static void fill(Buffer *t, DType type, int odd) {
  const int64_t n = t->bytes / nc_dtypesize(type);
  for (int64_t i = 0; i < n; i++) store(t->host, type, i, number(type, odd));
  send(t);
}

/*
** Loops: k on the CPU, g on the device
*/
/* A loop of an operation of nargs - 1 operands, all of one type. */
static TensorIter new_loop(Op op, DType type, int nargs) {
  TensorIter k = { .op = op, .common_dtype = type, .nargs = nargs };
  for (int j = 0; j < nargs; j++) k.type[j] = type;
  return k;
}

/* Random sizes; n of about `most' elements at most. */
static void set_sizes(TensorIter *k, int nd, int64_t most) {
  static const int64_t liked[] = { 1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 64, 100 };
  k->nd = nd;
  k->n = 1;
  for (int i = 0; i < nd; i++) {
    int64_t s = nd == 1 ? 1 + below(most) : ANYOF(liked);
    if (s > most / k->n) s = 1;
    k->size[i] = s;
    k->n *= s;
  }
}

/* Random steps of operand j: in order or not, with gaps, repeated; returns how
   many elements they reach over. */
static int64_t any_steps(TensorIter *k, int j) {
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

/* The same, within SPACE. */
static int64_t set_steps(TensorIter *k, int j) {
  int64_t reach;
  do reach = any_steps(k, j);
  while (reach > SPACE / 8 - 20);
  return reach;
}

/* Operand j lies in t, `offset' elements from its beginning. */
static void set_operand(TensorIter *k, TensorIter *g, int j, const Buffer *t,
                        int64_t offset) {
  const int64_t at = offset * nc_dtypesize(k->type[j]);
  k->p[j] = t->host + at;
  g->p[j] = (char *)t->there + at;
}

/* The same, mostly at an even address. */
static void place(TensorIter *k, TensorIter *g, int j, const Buffer *t,
                  int64_t reach) {
  const int64_t most = t->bytes / nc_dtypesize(k->type[j]) - reach;
  assert_true(most >= 0);
  set_operand(k, g, j, t,
              below(3) ? 0 : below(most < 20 ? most + 1 : 20));
}

/* Operand j is the same number in all places. */
static inline void set_number(TensorIter *k, TensorIter *g, int j, DType type,
                              Scalar v) {
  TensorIter *both[2] = { k, g };
  for (int i = 0; i < 2; i++) {
    both[i]->number[j] = v;
    both[i]->type[j] = type;
    memset(both[i]->step[j], 0, sizeof k->step[j]);
  }
}

/* Runs both; the results, in t, must be the same (see is_close). */
static void run_both(const TensorIter *k, const TensorIter *g, const Buffer *t,
                     double most, double unit) {
  char *back = malloc((size_t)t->bytes);
  const DType y = k->type[0];
  ok(nc_cpu.run(&nc_cpu, k));
  ok(d->run(d, g));
  ok(d->tohost(d, back, t->there, t->bytes, 0));
  for (int64_t i = 0; i < t->bytes / nc_dtypesize(y); i++) {
    const double a = load(t->host, y, i), b = load(back, y, i);
    if (is_close(a, b, most, unit)) continue;
    fail_msg("%s of %s to %s, %d dims, n %d, size %d %d, steps %d %d: "
             "element %d: %.17g is to be %.17g",
             nc_opinfo[k->op].name, nc_dtypename(k->nargs > 1 ? k->type[1] : y),
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
