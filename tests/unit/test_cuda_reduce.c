/* SPDX-License-Identifier: MIT */
/*
** test_cuda_reduce.c - reductions on a CUDA device against the CPU, of random
** types, shapes and steps; how exact they are, and that they repeat.
*/
#include "tests/unit/random_loops.h"

/*
** Reductions
*/
static DType foldedtype(Op op, DType x) {
  switch (nc_opinfo[op].types) {
    case CLASS_BOOL_AS_INT: return nc_category(x) == NC_FLOAT ? x : DT_i64;
    case CLASS_TO_BOOL: return x == DT_u8 ? DT_u8 : DT_b8;
    case CLASS_COUNT: return DT_i64;
    default: return x;
  }
}

/* Steps of x for kept dimensions, those of y, and for folded ones, which the
   core sorts. */
static int64_t foldsteps(TensorIter *k) {
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
    store(t->host, type, i,
          nc_category(type) == NC_FLOAT ? uniform(0.75, 1.28)
                                        : number(type, 0));
  send(t);
}

static void foldboth(TensorIter *k, TensorIter *g, Twin *y, double count) {
  const double wide = k->type[0] == DT_f64 ? 1e-12 : 3e-6;
  double unit = 1e-30;
  if (k->op == OP_sum || k->op == OP_mean) unit = 5;
  if (k->op == OP_sum) unit *= sqrt(count);
  ok(nc_cpu.run(&nc_cpu, k));
  ok(d->run(d, g));
  same(k, y,
       nc_category(k->type[0]) != NC_FLOAT
           ? 0
           : fmax(accuracy(k->type[0]), wide * (k->op == OP_prod ? 9 : 1)),
       unit);
}

static void foldcase(Op op, DType type, Twin *y, Twin *x) {
  TensorIter k, g;
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
  else fill(x, type, 9);
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
            (nc_opinfo[op].types != CLASS_FLOAT_ONLY ||
             nc_category(types[t]) == NC_FLOAT))
          foldcase((Op)op, types[t], &y, &x);
  drop(&y);
  drop(&x);
}

/* Few results of many elements: these are cut in pieces. */
static void longcase(Op op, DType type, int along, Twin *y, Twin *x) {
  const int64_t results = 1 + below(along ? 3 : 40), offset = below(2);
  const int64_t count = (600000 - 64) / 8 / results - below(50);
  TensorIter k, g;
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
  static const Op ops[] = { OP_sum, OP_mean,          OP_amax,
                            OP_all, OP_count_nonzero, OP__norm2 };
  Twin y = twin(1024), x = twin(600000);
  (void)unused;
  for (int t = 0; t < 10; t++) {
    fillsmall(&x, types[t]);
    for (int i = 0; i < 6; i++)
      if (nc_opinfo[ops[i]].types != CLASS_FLOAT_ONLY ||
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
  TensorIter k;
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
  TensorIter k;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_folds),
    cmocka_unit_test(test_longfolds),
    cmocka_unit_test(test_accuracy),
    cmocka_unit_test(test_repeatable),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
