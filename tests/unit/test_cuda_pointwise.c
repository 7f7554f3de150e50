/* SPDX-License-Identifier: MIT */
/*
** test_cuda_pointwise.c - every pointwise operation on a CUDA device against the
** CPU, for random types, shapes, steps and addresses; copies likewise, and how
** large loops are cut.
*/
#include "tests/unit/random_loops.h"

/*
** Elementwise rows
*/
static int takes(Op op, DType work) {
  const Category c = nc_category(work);
  if (op == OP_bitwise_not && work == DT_b8) return 0; /* logical_not */
  switch (nc_opinfo[op].types) {
    case CLASS_ANY: return 1;
    case CLASS_NUMERIC:
    case CLASS_NO_BOOL:
    case CLASS_BOOL_AS_INT:
    case CLASS_DIVISION: return c != NC_BOOL;
    case CLASS_INT_OR_BOOL: return c != NC_FLOAT;
    case CLASS_INTEGER: return c == NC_INT;
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
  TensorIter k, g;
  int64_t reach[NC_MAXIN];
  memset(&k, 0, sizeof k);
  k.op = op;
  k.work = work;
  k.nargs = nc_arity(op) + 1;
  k.par[0] = nc_category(work) == NC_FLOAT ? uniform(0.5, 2) : 2;
  k.par[1] = 0.25;
  sizes(&k, (int)below(5), 2500);
  for (int j = 0; j < k.nargs; j++) {
    k.type[j] = j == 0                        ? (truth ? DT_b8 : work)
                : j == 1 && kind == CHOOSE_OP ? DT_b8
                                              : operandtype(work);
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
  /* rows of floats alone may subtract numbers that are nearly equal */
  same(&k, &operand[0], truth ? 0 : accuracy(work),
       nc_opinfo[op].types >= CLASS_FLOAT ? 1 : 1e-30);
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
    TensorIter k, g;
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
  TensorIter k, g;
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
  } else place(&k, &g, 1, x, reach[1]);
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

/* Tiles and patches at their edges, between other dimensions: copies, casts,
   and sums with what is not turned. */
static void turnedcase(TensorIter *k, DType type, DType to) {
  static const int64_t liked[] = { 8, 31, 32, 33, 64, 66, 128, 130 };
  const int outer = below(2) ? 1 : 2, other = 3 - outer;
  memset(k, 0, sizeof *k);
  k->op = OP_clone;
  k->type[0] = to;
  k->type[1] = type;
  k->work = movetype(to, type);
  k->nargs = 2;
  k->nd = 3;
  k->size[0] = liked[below(8)];
  k->size[1] = liked[below(8)];
  k->size[2] = 1 + below(2);
  k->n = k->size[0] * k->size[1] * k->size[2];
  k->step[0][0] = 1;
  k->step[0][1] = k->size[0];
  k->step[0][2] = k->size[0] * k->size[1];
  k->step[1][outer] = 1;
  k->step[1][0] = k->size[outer];
  k->step[1][other] = k->size[outer] * k->size[0];
  if (type != to || type == DT_b8 || below(3) > 0) return;
  k->op = OP_add;
  k->nargs = 3;
  k->type[2] = type;
  memcpy(k->step[2], k->step[0], sizeof k->step[0]);
}

static void test_transposes(void **unused) {
  enum { ROOM = 300000 };
  Twin t[3] = { twin(ROOM), twin(ROOM), twin(ROOM) };
  (void)unused;
  for (int i = 0; i < 90; i++) {
    const DType type = types[below(10)];
    TensorIter k, g;
    turnedcase(&k, type, below(4) ? type : types[below(10)]);
    g = k;
    fill(&t[1], type, 4);
    fill(&t[2], type, 4);
    memset(t[0].host, 0, ROOM);
    send(&t[0]);
    for (int j = 0; j < k.nargs; j++) {
      k.p[j] = t[j].host;
      g.p[j] = t[j].there;
    }
    ok(nc_cpu.run(&nc_cpu, &k));
    ok(d->run(d, &g));
    same(&k, &t[0], 0, 0);
  }
  for (int j = 0; j < 3; j++) drop(&t[j]);
}

/* Many small matrices are not turned by tiles, which are large. */
static void test_smalltiles(void **unused) {
  enum { SIDE = 8, MANY = 200, ALL = MANY * SIDE * SIDE };
  Twin y = twin(ALL * 4), x = twin(ALL * 4);
  TensorIter k = { .op = OP_clone,
                   .work = DT_f32,
                   .nargs = 2,
                   .nd = 3,
                   .n = ALL,
                   .size = { SIDE, SIDE, MANY },
                   .type = { DT_f32, DT_f32 },
                   .step = { { 1, SIDE, SIDE * SIDE },
                             { SIDE, 1, SIDE * SIDE } } };
  TensorIter g = k;
  (void)unused;
  fill(&x, DT_f32, 0);
  k.p[0] = y.host, k.p[1] = x.host;
  g.p[0] = y.there, g.p[1] = x.there;
  const long long before = emu_count("threads");
  ok(nc_cpu.run(&nc_cpu, &k));
  ok(d->run(d, &g));
  same(&k, &y, 0, 0);
  assert_true(emu_count("threads") - before <= ALL / 2);
  drop(&y);
  drop(&x);
}

/*
** Beyond 32 bits
*/
static int64_t seen, pieces;
static char *bottom, *top;

static int look(const Device *unused, const TensorIter *k) {
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
  if ((char *)k->p[0] + last * 4 > top) top = (char *)k->p[0] + last * 4;
  seen += n;
  pieces++;
  return NC_OK;
}

static void test_pieces(void **unused) {
  static char base[4096];
  char *p = (char *)(((uintptr_t)base + 63) / 64 * 64);
  TensorIter k;
  (void)unused;
  memset(&k, 0, sizeof k);
  k.nargs = 2;
  k.type[0] = k.type[1] = DT_f32;
  k.p[0] = k.p[1] = bottom = top = p;
  k.nd = 1;
  k.n = k.size[0] = 5000000001;
  k.step[0][0] = k.step[1][0] = 1;
  ok(nc_in_chunks(d, &k, 1, look));
  assert_int_equal(seen, 5000000001);
  assert_int_equal(pieces, 4);
  assert_ptr_equal(bottom, p);
  assert_ptr_equal(top, p + 5000000000 * 4);
  k.nd = 2; /* few elements, far apart */
  k.size[0] = 3;
  k.size[1] = 4;
  k.n = 12;
  k.step[0][1] = k.step[1][1] = (int64_t)1 << 33;
  seen = pieces = 0;
  top = p;
  ok(nc_in_chunks(d, &k, 2, look));
  assert_int_equal(seen, 12);
  assert_ptr_equal(top, p + 4 * (((int64_t)3 << 33) + 2));
}

static void test_divisors(void **unused) {
  (void)unused;
  for (int i = 0; i < 200000; i++) {
    const int64_t by =
        below(3) ? 1 + below(1 << (1 + below(30))) : (int64_t)1 << below(31);
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
  TensorIter k;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_divisors),   cmocka_unit_test(test_pieces),
    cmocka_unit_test(test_maps),       cmocka_unit_test(test_inplace),
    cmocka_unit_test(test_smalltiles), cmocka_unit_test(test_copies),
    cmocka_unit_test(test_transposes), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
