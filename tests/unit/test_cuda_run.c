/* SPDX-License-Identifier: MIT */
/*
** test_cuda_run.c - every row on a CUDA device against the CPU, for random
** types, shapes, steps and addresses; copies and reductions likewise, and how
** large loops are cut.
*/
#include "cudahelp.h"

#include <math.h>

#include "emulation/emulation.h"
#include "gpu.h"
#include "rows.h"
#include "run.h"
#include "scalar.h"
#undef nc_fail                /* the core's again */
#undef nc_dtypesize

#define SPACE 65536           /* bytes of an operand */

static const Accelerator *cuda;
static const Device *d;

/*
** Random numbers of the tests
*/
static uint64_t state = 88172645463325252u;

static int64_t below(int64_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)(state >> 1) % n;
}

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
static void sizes(Loop *k, int nd, int64_t most) {
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
static int64_t anysteps(Loop *k, int j) {
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

static int64_t steps(Loop *k, int j) {
  int64_t reach;
  do reach = anysteps(k, j);
  while (reach > SPACE / 8 - 20);
  return reach;
}

/* Lets operand j lie in t, mostly at an even address. */
static void place(Loop *host, Loop *there, int j, const Twin *t,
                  int64_t reach) {
  const int64_t size = nc_dtypesize(host->type[j]);
  const int64_t most = t->bytes / size - reach;
  const int64_t offset = below(3) ? 0 : below(most < 20 ? most + 1 : 20);
  assert_true(most >= 0);
  host->p[j] = t->host + offset * size;
  there->p[j] = (char *)t->there + offset * size;
}

/* Do both have one result?  `most' is relative to it, or to `unit'. */
static void same(const Loop *k, const Twin *t, double most, double unit) {
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
             nc_rowname(k->op), nc_dtypename(k->nargs > 1 ? k->type[1] : y),
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

/*
** Elementwise rows
*/
static int takes(Op op, DType work) {
  const Category c = nc_category(work);
  if (op == OP_bitwise_not && work == DT_b8) return 0;  /* logical_not */
  switch (nc_opinfo[op].types) {
    case CLASS_ANY: return 1;
    case CLASS_NUM: case CLASS_NUB: case CLASS_NUI: case CLASS_DVI:
      return c != NC_BOOL;
    case CLASS_INT: return c != NC_FLOAT;
    case CLASS_INN: return c == NC_INT;
    default: return c == NC_FLOAT;
  }
}

/* A type that promotion allows beside the work type. */
static DType operandtype(DType work) {
  DType t = below(4) ? work : types[below(10)];
  if (nc_category(t) > nc_category(work)) return work;
  if (nc_category(t) == NC_FLOAT && work != DT_f64) return work;
  if (nc_category(work) == NC_INT && t > work) return work;
  return t;
}

/* A number as the core gives it: an element of the work type. */
static Scalar element(DType work) {
  char one[8];
  store(one, work, 0, number(work, 6));
  if (nc_category(work) == NC_FLOAT) return nc_float(load(one, work, 0));
  return nc_int((int64_t)load(one, work, 0));
}

static void mapcase(Op op, DType work, Twin operand[]) {
  const OpKind kind = nc_opinfo[op].kind;
  const int truth = kind == TEST_OP || kind == COMPARE_OP;
  Loop k, g;
  int64_t reach[NC_MAXIN];
  memset(&k, 0, sizeof k);
  k.op = op;
  k.work = work;
  k.nargs = nc_arity(op) + 1;
  k.par[0] = nc_category(work) == NC_FLOAT ? uniform(0.5, 2) : 2;
  k.par[1] = 0.25;
  sizes(&k, (int)below(5), 2500);
  for (int j = 0; j < k.nargs; j++) {
    k.type[j] = j == 0 ? (truth ? DT_b8 : work)
                : j == 1 && kind == CHOOSE_OP ? DT_b8 : operandtype(work);
    reach[j] = steps(&k, j);
  }
  g = k;
  for (int j = 0; j < k.nargs; j++) {
    if (j > 0 && below(6) == 0) {
      k.number[j] = g.number[j] = element(k.type[j] = work);
      if (j == 1 && kind == CHOOSE_OP)
        k.number[j] = g.number[j] = nc_int(below(2));
      memset(k.step[j], 0, sizeof k.step[j]);
      g.type[j] = k.type[j];
      memset(g.step[j], 0, sizeof g.step[j]);
      continue;
    }
    if (j > 0) fill(&operand[j], k.type[j], 9);
    place(&k, &g, j, &operand[j], reach[j]);
  }
  memset(operand[0].host, 0, SPACE);
  send(&operand[0]);
  ok(nc_cpu.run(&nc_cpu, &k));
  ok(d->run(d, &g));
  /* these two subtract numbers that are nearly equal */
  same(&k, &operand[0], truth ? 0 : accuracy(work),
       op == OP_logaddexp || op == OP_gelu ? 1 : 1e-30);
}

static void test_maps(void **unused) {
  Twin operand[NC_MAXIN];
  (void)unused;
  for (int j = 0; j < NC_MAXIN; j++) operand[j] = twin(SPACE);
  for (int op = 0; op < OP_COUNT; op++)
    for (int t = 0; t < 10; t++)
      for (int i = 0; i < 6; i++)
        if (nc_opinfo[op].kind != REDUCE_OP && op != OP_clone &&
            takes((Op)op, types[t]))
          mapcase((Op)op, types[t], operand);
  for (int j = 0; j < NC_MAXIN; j++) drop(&operand[j]);
}

/* The result may be one of the operands. */
static void test_inplace(void **unused) {
  Twin t = twin(SPACE);
  (void)unused;
  for (int i = 0; i < 40; i++) {
    const DType type = types[1 + below(9)];
    Loop k, g;
    memset(&k, 0, sizeof k);
    k.op = OP_mul;
    k.work = type;
    k.nargs = 3;
    sizes(&k, (int)below(3), 2500);
    for (int j = 0; j < 3; j++) k.type[j] = type;
    const int64_t reach = steps(&k, 0);
    memcpy(k.step[1], k.step[0], sizeof k.step[0]);
    k.number[2] = nc_category(type) == NC_FLOAT ? nc_float(2) : nc_int(3);
    g = k;
    fill(&t, type, 0);
    place(&k, &g, 0, &t, reach);
    k.p[1] = k.p[0];
    g.p[1] = g.p[0];
    ok(nc_cpu.run(&nc_cpu, &k));
    ok(d->run(d, &g));
    same(&k, &t, accuracy(type), 1e-30);
  }
  drop(&t);
}

/*
** Copies
*/
static DType movetype(DType y, DType x) {
  return nc_category(x) != NC_FLOAT && nc_category(y) == NC_FLOAT ? y : x;
}

static void copycase(DType from, DType to, Twin *y, Twin *x) {
  Loop k, g;
  int64_t reach[2];
  memset(&k, 0, sizeof k);
  k.op = OP_clone;
  k.work = movetype(to, from);
  k.nargs = 2;
  k.type[0] = to;
  k.type[1] = from;
  sizes(&k, (int)below(5), 2500);
  reach[0] = steps(&k, 0);
  reach[1] = steps(&k, 1);
  g = k;
  fill(x, from, 4);
  memset(y->host, 0, SPACE);
  send(y);
  place(&k, &g, 0, y, reach[0]);
  if (from == to && below(8) == 0) {
    k.number[1] = g.number[1] = element(to);
    memset(g.step[1], 0, sizeof g.step[1]);
    memset(k.step[1], 0, sizeof k.step[1]);
  } else
    place(&k, &g, 1, x, reach[1]);
  ok(nc_cpu.run(&nc_cpu, &k));
  ok(d->run(d, &g));
  same(&k, y, 0, 0);
}

static void test_copies(void **unused) {
  Twin y = twin(SPACE), x = twin(SPACE);
  (void)unused;
  for (int a = 0; a < 10; a++)
    for (int b = 0; b < 10; b++)
      for (int i = 0; i < (a == b ? 60 : 8); i++)
        copycase(types[a], types[b], &y, &x);
  drop(&y);
  drop(&x);
}

/* Tiles at their edges, between other dimensions. */
static void test_transposes(void **unused) {
  static const int64_t liked[] = { 8, 31, 32, 33, 63, 64, 65, 130 };
  Twin y = twin(300000), x = twin(300000);
  (void)unused;
  for (int i = 0; i < 60; i++) {
    const DType type = types[below(10)];
    Loop k, g;
    memset(&k, 0, sizeof k);
    k.op = OP_clone;
    k.work = k.type[0] = k.type[1] = type;
    k.nargs = 2;
    k.nd = 3;
    k.size[0] = liked[below(8)];
    k.size[1] = liked[below(8)];
    k.size[2] = 1 + below(2);
    k.n = k.size[0] * k.size[1] * k.size[2];
    const int outer = below(2) ? 1 : 2, other = 3 - outer;
    k.step[0][0] = 1;
    k.step[0][1] = k.size[0];
    k.step[0][2] = k.size[0] * k.size[1];
    k.step[1][outer] = 1;
    k.step[1][0] = k.size[outer];
    k.step[1][other] = k.size[outer] * k.size[0];
    g = k;
    fill(&x, type, 0);
    memset(y.host, 0, 300000);
    send(&y);
    k.p[0] = y.host;
    k.p[1] = x.host;
    g.p[0] = y.there;
    g.p[1] = x.there;
    ok(nc_cpu.run(&nc_cpu, &k));
    ok(d->run(d, &g));
    same(&k, &y, 0, 0);
  }
  drop(&y);
  drop(&x);
}

/*
** Reductions
*/
static DType foldedtype(Op op, DType x) {
  switch (nc_opinfo[op].types) {
    case CLASS_NUI: return nc_category(x) == NC_FLOAT ? x : DT_i64;
    case CLASS_TRU: return x == DT_u8 ? DT_u8 : DT_b8;
    case CLASS_CNT: return DT_i64;
    default: return x;
  }
}

/* Steps of x for kept dimensions, those of y, and for folded ones, which the
   core sorts. */
static int64_t foldsteps(Loop *k) {
  const int64_t reach = steps(k, 1);
  const int inner = k->nd - k->nfold;
  int64_t n = 1;
  for (int i = 0; i < inner; i++) {
    k->step[0][i] = n;
    n *= k->size[i];
  }
  for (int i = inner; i < k->nd; i++) k->step[0][i] = 0;
  for (int i = inner + 1; i < k->nd; i++)
    for (int j = i; j > inner && k->step[1][j] < k->step[1][j - 1]; j--) {
      int64_t s = k->step[1][j];
      k->step[1][j] = k->step[1][j - 1];
      k->step[1][j - 1] = s;
      s = k->size[j];
      k->size[j] = k->size[j - 1];
      k->size[j - 1] = s;
    }
  k->n = n;
  return reach;
}

/* Elements whose product stays a number. */
static void fillsmall(Twin *t, DType type) {
  const int64_t n = t->bytes / nc_dtypesize(type);
  for (int64_t i = 0; i < n; i++)
    store(t->host, type, i, nc_category(type) == NC_FLOAT
                                ? uniform(0.75, 1.28) : number(type, 0));
  send(t);
}

static void foldboth(Loop *k, Loop *g, Twin *y, double count) {
  const double wide = k->type[0] == DT_f64 ? 1e-12 : 3e-6;
  double unit = 1e-30;
  if (k->op == OP_sum || k->op == OP_mean) unit = 5;
  if (k->op == OP_sum) unit *= sqrt(count);
  ok(nc_cpu.run(&nc_cpu, k));
  ok(d->run(d, g));
  same(k, y, nc_category(k->type[0]) != NC_FLOAT ? 0
             : fmax(accuracy(k->type[0]), wide * (k->op == OP_prod ? 9 : 1)),
       unit);
}

static void foldcase(Op op, DType type, Twin *y, Twin *x) {
  Loop k, g;
  double count = 1;
  memset(&k, 0, sizeof k);
  k.op = op;
  k.work = k.type[1] = type;
  k.type[0] = foldedtype(op, type);
  k.nargs = 2;
  k.par[0] = op == OP__normp ? 3 : 1;
  sizes(&k, (int)below(5), 4000);
  k.nfold = (int)below(k.nd + 1);
  const int64_t reach = foldsteps(&k);
  const char *init = nc_opinfo[op].fold[0];
  if (k.nfold && below(15) == 0 && (init[0] == '0' || init[0] == '1'))
    k.size[k.nd - 1] = 0;
  for (int i = k.nd - k.nfold; i < k.nd; i++) count *= (double)k.size[i];
  g = k;
  if (op == OP_sum || op == OP_prod || op == OP_mean || op >= OP__norm1)
    fillsmall(x, type);
  else
    fill(x, type, 9);
  memset(y->host, 0, (size_t)y->bytes);
  send(y);
  place(&k, &g, 0, y, k.n);
  place(&k, &g, 1, x, reach);
  foldboth(&k, &g, y, count);
}

static void test_folds(void **unused) {
  Twin y = twin(SPACE), x = twin(2 * SPACE);
  (void)unused;
  for (int op = 0; op < OP_COUNT; op++)
    for (int t = 0; t < 10; t++)
      for (int i = 0; i < 25; i++)
        if (nc_opinfo[op].kind == REDUCE_OP &&
            (nc_opinfo[op].types != CLASS_FLO ||
             nc_category(types[t]) == NC_FLOAT))
          foldcase((Op)op, types[t], &y, &x);
  drop(&y);
  drop(&x);
}

/* Few results of many elements: these are cut in pieces. */
static void longcase(Op op, DType type, int along, Twin *y, Twin *x) {
  const int64_t results = 1 + below(along ? 3 : 40), offset = below(2);
  const int64_t count = (600000 - 64) / 8 / results - below(50);
  Loop k, g;
  memset(&k, 0, sizeof k);
  k.op = op;
  k.work = k.type[1] = type;
  k.type[0] = foldedtype(op, type);
  k.nargs = 2;
  k.nd = results > 1 ? 2 : 1;
  k.nfold = 1;
  k.n = k.size[0] = results;
  k.size[k.nd - 1] = count;
  k.step[0][0] = results > 1;
  k.step[1][0] = along ? count : 1;
  k.step[1][k.nd - 1] = along || results == 1 ? 1 : results;
  g = k;
  k.p[0] = y->host;
  g.p[0] = y->there;
  k.p[1] = x->host + offset * nc_dtypesize(type);
  g.p[1] = (char *)x->there + offset * nc_dtypesize(type);
  memset(y->host, 0, (size_t)y->bytes);
  send(y);
  foldboth(&k, &g, y, (double)count);
}

static void test_longfolds(void **unused) {
  static const Op ops[] = { OP_sum, OP_mean, OP_amax, OP_all,
                            OP_count_nonzero, OP__norm2 };
  Twin y = twin(1024), x = twin(600000);
  (void)unused;
  for (int t = 0; t < 10; t++) {
    fillsmall(&x, types[t]);
    for (int i = 0; i < 6; i++)
      if (nc_opinfo[ops[i]].types != CLASS_FLO ||
          nc_category(types[t]) == NC_FLOAT) {
        longcase(ops[i], types[t], 1, &y, &x);
        longcase(ops[i], types[t], 0, &y, &x);
      }
  }
  drop(&y);
  drop(&x);
}

/* Equal numbers, whose sum is rounded to one side again and again: this is
   where a long chain of additions goes wrong. */
static void test_accuracy(void **unused) {
  enum { N = 1500000 };
  Twin y = twin(8), x = twin(N * 4);
  float sum;
  Loop k;
  (void)unused;
  for (int64_t i = 0; i < N; i++) store(x.host, DT_f32, i, 0.1f);
  send(&x);
  memset(&k, 0, sizeof k);
  k.op = OP_sum;
  k.work = k.type[0] = k.type[1] = DT_f32;
  k.nargs = 2;
  k.nd = k.nfold = 1;
  k.n = 1;
  k.size[0] = N;
  k.step[1][0] = 1;
  k.p[0] = y.there;
  k.p[1] = x.there;
  ok(d->run(d, &k));
  ok(d->tohost(d, &sum, y.there, 4, 0));
  assert_true(fabs(sum / (N * (double)0.1f) - 1) < 1e-6);
  drop(&y);
  drop(&x);
}

/* The same bits whenever it is run. */
static void test_repeatable(void **unused) {
  Twin y = twin(16), x = twin(SPACE);
  float first, again;
  Loop k;
  (void)unused;
  fill(&x, DT_f32, 0);
  memset(&k, 0, sizeof k);
  k.op = OP_sum;
  k.work = k.type[0] = k.type[1] = DT_f32;
  k.nargs = 2;
  k.nd = k.nfold = 1;
  k.n = 1;
  k.size[0] = SPACE / 4;
  k.step[1][0] = 1;
  k.p[0] = y.there;
  k.p[1] = x.there;
  ok(d->run(d, &k));
  ok(d->tohost(d, &first, y.there, 4, 0));
  for (int i = 0; i < 3; i++) {
    ok(d->run(d, &k));
    ok(d->tohost(d, &again, y.there, 4, 0));
    assert_memory_equal(&first, &again, 4);
  }
  drop(&y);
  drop(&x);
}

/*
** Beyond 32 bits
*/
static int64_t seen, pieces;
static char *bottom, *top;

static int look(const Device *unused, const Loop *k) {
  (void)unused;
  assert_true(nc_fitsoffsets(k->nd, k->size, k->nargs, k->step));
  int64_t n = 1, last = 0;
  for (int i = 0; i < k->nd; i++) {
    n *= k->size[i];
    last += (k->size[i] - 1) * k->step[0][i];
  }
  assert_int_equal(n, k->n);
  assert_true((uintptr_t)k->p[1] % 64 == 0);
  if ((char *)k->p[0] < bottom) bottom = k->p[0];
  if ((char *)k->p[0] + last * 4 > top)
    top = (char *)k->p[0] + last * 4;
  seen += n;
  pieces++;
  return NC_OK;
}

static void test_pieces(void **unused) {
  static char base[4096];
  char *p = (char *)(((uintptr_t)base + 63) / 64 * 64);
  Loop k;
  (void)unused;
  memset(&k, 0, sizeof k);
  k.nargs = 2;
  k.type[0] = k.type[1] = DT_f32;
  k.p[0] = k.p[1] = bottom = top = p;
  k.nd = 1;
  k.n = k.size[0] = 5000000001;
  k.step[0][0] = k.step[1][0] = 1;
  ok(nc_inpieces(d, &k, 1, look));
  assert_int_equal(seen, 5000000001);
  assert_int_equal(pieces, 4);
  assert_ptr_equal(bottom, p);
  assert_ptr_equal(top, p + 5000000000 * 4);
  k.nd = 2;                   /* few elements, far apart */
  k.size[0] = 3;
  k.size[1] = 4;
  k.n = 12;
  k.step[0][1] = k.step[1][1] = (int64_t)1 << 33;
  seen = pieces = 0;
  top = p;
  ok(nc_inpieces(d, &k, 2, look));
  assert_int_equal(seen, 12);
  assert_ptr_equal(top, p + 4 * (((int64_t)3 << 33) + 2));
}

static void test_divisors(void **unused) {
  (void)unused;
  for (int i = 0; i < 200000; i++) {
    const int64_t by = below(3) ? 1 + below(1 << (1 + below(30)))
                                : (int64_t)1 << below(31);
    const int64_t n = below(4) ? below((int64_t)1 << 31)
                               : (((int64_t)1 << 31) - 1 - below(3)) / by * by;
    const Divisor x = nc_divisor(by);
    const uint32_t high = (uint32_t)(((uint64_t)n * x.mul) >> 32);
    assert_int_equal((high + (uint32_t)n) >> x.shift, n / by);
  }
}

/* A row that no kernel computes in that type is refused. */
static void test_refused(void **unused) {
  Twin t = twin(64);
  Loop k;
  (void)unused;
  memset(&k, 0, sizeof k);
  k.op = OP_exp;
  k.work = k.type[0] = k.type[1] = DT_i32;
  k.nargs = 2;
  k.n = 1;
  k.p[0] = k.p[1] = t.there;
  assert_int_equal(d->run(d, &k), NC_EDTYPE);
  says("no CUDA kernel of it for int32");
  drop(&t);
}

static int begin(void **unused) {
  (void)unused;
  if (nacre_plugin(&host, &cuda) != NC_OK) return -1;
  d = cuda->device[0];
  return 0;
}

static int end(void **unused) {
  (void)unused;
  nc_close();
  return emu_leaks();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_divisors),  cmocka_unit_test(test_pieces),
    cmocka_unit_test(test_maps),      cmocka_unit_test(test_inplace),
    cmocka_unit_test(test_copies),    cmocka_unit_test(test_transposes),
    cmocka_unit_test(test_folds),     cmocka_unit_test(test_longfolds),
    cmocka_unit_test(test_accuracy),  cmocka_unit_test(test_repeatable),
    cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
