/* SPDX-License-Identifier: MIT */
/*
** test_cuda_reduce.c - reductions on a CUDA device against the CPU, of random
** types, shapes and steps; how exact they are, and that they repeat.
*/
#include "tests/unit/random_loops.h"

/*
** Reductions
*/
static DType result_type(Op op, DType x) {
  switch (nc_opinfo[op].types) {
    case CLASS_BOOL_AS_INT: return nc_category(x) == NC_FLOAT ? x : DT_i64;
    case CLASS_TO_BOOL: return x == DT_u8 ? DT_u8 : DT_b8;
    case CLASS_COUNT: return DT_i64;
    default: return x;
  }
}

/* Steps of x for kept dimensions, those of y, and for reduced ones, which the
   core sorts. */
static int64_t reduce_steps(TensorIter *k) {
  const int64_t reach = set_steps(k, 1);
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
static void fill_small(Buffer *t, DType type) {
  const int64_t n = t->bytes / nc_dtypesize(type);
  for (int64_t i = 0; i < n; i++)
    store(t->host, type, i,
          nc_category(type) == NC_FLOAT ? uniform(0.75, 1.28)
                                        : number(type, 0));
  send(t);
}

/* Runs both, from `count' elements for each result. */
static void reduce_both(TensorIter *k, TensorIter *g, Buffer *y, double count) {
  const double wide = k->type[0] == DT_f64 ? 1e-12 : 3e-6;
  double unit = 1e-30;
  if (k->op == OP_sum || k->op == OP_mean) unit = 5;
  if (k->op == OP_sum) unit *= sqrt(count);
  clear(y);
  run_both(k, g, y,
           nc_category(k->type[0]) != NC_FLOAT
               ? 0
               : fmax(accuracy(k->type[0]), wide * (k->op == OP_prod ? 9 : 1)),
           unit);
}

static void check_reduce(Op op, DType type, Buffer *y, Buffer *x) {
  TensorIter k = new_loop(op, type, 2), g;
  double count = 1;
  k.type[0] = result_type(op, type);
  k.par[0] = op == OP__normp ? 3 : 1;
  set_sizes(&k, (int)below(5), 4000);
  k.nfold = (int)below(k.nd + 1);
  const int64_t reach = reduce_steps(&k);
  const char *init = nc_opinfo[op].fold[0];
  if (k.nfold && below(15) == 0 && (init[0] == '0' || init[0] == '1'))
    k.size[k.nd - 1] = 0;
  for (int i = k.nd - k.nfold; i < k.nd; i++) count *= (double)k.size[i];
  g = k;
  if (op == OP_sum || op == OP_prod || op == OP_mean || op >= OP__norm1)
    fill_small(x, type);
  else fill(x, type, 9);
  place(&k, &g, 0, y, k.n);
  place(&k, &g, 1, x, reach);
  reduce_both(&k, &g, y, count);
}

/* Does the reduction take this type? */
static int takes(Op op, DType type) {
  return nc_opinfo[op].types != CLASS_FLOAT_ONLY ||
         nc_category(type) == NC_FLOAT;
}

static void test_reduce(void **state) {
  Buffer y = new_buffer(SPACE), x = new_buffer(2 * SPACE);
  for (int op = 0; op < OP_COUNT; op++)
    for (int t = 0; t < 10; t++)
      for (int i = 0; i < 25; i++)
        if (nc_opinfo[op].kind == REDUCE_OP && takes((Op)op, dtypes[t]))
          check_reduce((Op)op, dtypes[t], &y, &x);
  drop(&y);
  drop(&x);
}

/* Few results of many elements: these are cut in pieces. */
static void check_long(Op op, DType type, int along, Buffer *y, Buffer *x) {
  const int64_t results = 1 + below(along ? 3 : 40), offset = below(2);
  const int64_t count = (600000 - 64) / 8 / results - below(50);
  TensorIter k = new_loop(op, type, 2), g;
  k.type[0] = result_type(op, type);
  k.nd = results > 1 ? 2 : 1;
  k.nfold = 1;
  k.n = k.size[0] = results;
  k.size[k.nd - 1] = count;
  k.step[0][0] = results > 1;
  k.step[1][0] = along ? count : 1;
  k.step[1][k.nd - 1] = along || results == 1 ? 1 : results;
  g = k;
  set_operand(&k, &g, 0, y, 0);
  set_operand(&k, &g, 1, x, offset);
  reduce_both(&k, &g, y, (double)count);
}

static void test_long_reduce(void **state) {
  static const Op ops[] = { OP_sum, OP_mean,          OP_amax,
                            OP_all, OP_count_nonzero, OP__norm2 };
  Buffer y = new_buffer(1024), x = new_buffer(600000);
  for (int t = 0; t < 10; t++) {
    fill_small(&x, dtypes[t]);
    for (int i = 0; i < COUNT(ops); i++)
      for (int along = 1; along >= 0 && takes(ops[i], dtypes[t]); along--)
        check_long(ops[i], dtypes[t], along, &y, &x);
  }
  drop(&y);
  drop(&x);
}

/* The sum of n float32 elements of x, on the device. */
static float device_sum(const Buffer *y, const Buffer *x, int64_t n) {
  TensorIter k = new_loop(OP_sum, DT_f32, 2);
  float sum;
  k.nd = k.nfold = 1;
  k.n = 1;
  k.size[0] = n;
  k.step[1][0] = 1;
  k.p[0] = y->there;
  k.p[1] = x->there;
  ok(d->run(d, &k));
  ok(d->tohost(d, &sum, y->there, 4, 0));
  return sum;
}

/* Equal numbers, whose sum is rounded to one side again and again: this is
   where a long chain of additions goes wrong. */
static void test_accuracy(void **state) {
  enum { N = 1500000 };
  Buffer y = new_buffer(8), x = new_buffer(N * 4);
  for (int64_t i = 0; i < N; i++) store(x.host, DT_f32, i, 0.1f);
  send(&x);
  assert_true(fabs(device_sum(&y, &x, N) / (N * (double)0.1f) - 1) < 1e-6);
  drop(&y);
  drop(&x);
}

/* The same bits whenever it is run. */
static void test_repeatable(void **state) {
  Buffer y = new_buffer(16), x = new_buffer(SPACE);
  fill(&x, DT_f32, 0);
  const float first = device_sum(&y, &x, SPACE / 4);
  for (int i = 0; i < 3; i++) {
    const float again = device_sum(&y, &x, SPACE / 4);
    assert_memory_equal(&first, &again, 4);
  }
  drop(&y);
  drop(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reduce),
    cmocka_unit_test(test_long_reduce),
    cmocka_unit_test(test_accuracy),
    cmocka_unit_test(test_repeatable),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
