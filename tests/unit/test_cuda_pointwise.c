/* SPDX-License-Identifier: MIT */
/*
** test_cuda_pointwise.c - every pointwise operation on a CUDA device against
** the CPU, for random types, shapes, steps and addresses; copies likewise, and
** how large loops are cut.
*/
#include "tests/unit/random_loops.h"

/*
** Pointwise operations
*/
static int takes(Op op, DType common) {
  const Category c = nc_category(common);
  if (op == OP_bitwise_not && common == DT_b8) return 0; /* logical_not */
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

/* A type that promotion allows beside the common type. */
static DType operand_type(DType common) {
  DType t = below(4) ? common : ANYOF(dtypes);
  if (nc_category(t) > nc_category(common)) return common;
  if (nc_category(t) == NC_FLOAT && common != DT_f64) return common;
  if (nc_category(common) == NC_INT && t > common) return common;
  return t;
}

/* A number as the core gives it: an element of the common type. */
static Scalar random_scalar(DType common) {
  char one[8];
  store(one, common, 0, number(common, 6));
  if (nc_category(common) == NC_FLOAT) return nc_float(load(one, common, 0));
  return nc_int((int64_t)load(one, common, 0));
}

static void check_op(Op op, DType common, Buffer operand[]) {
  const OpKind kind = nc_opinfo[op].kind;
  const int truth = kind == TEST_OP || kind == COMPARE_OP;
  TensorIter k = new_loop(op, common, nc_arity(op) + 1), g;
  int64_t reach[NC_MAXIN];
  k.par[0] = nc_category(common) == NC_FLOAT ? uniform(0.5, 2) : 2;
  k.par[1] = 0.25;
  set_sizes(&k, (int)below(5), 2500);
  for (int j = 0; j < k.nargs; j++) {
    k.type[j] = j == 0                        ? (truth ? DT_b8 : common)
                : j == 1 && kind == CHOOSE_OP ? DT_b8
                                              : operand_type(common);
    reach[j] = set_steps(&k, j);
  }
  g = k;
  for (int j = 0; j < k.nargs; j++) {
    if (j > 0 && below(6) == 0) {
      const Scalar v = random_scalar(common), truth_value = nc_int(below(2));
      set_number(&k, &g, j, common,
                 j == 1 && kind == CHOOSE_OP ? truth_value : v);
      continue;
    }
    if (j > 0) fill(&operand[j], k.type[j], 9);
    place(&k, &g, j, &operand[j], reach[j]);
  }
  clear(&operand[0]);
  /* operations of floats alone may subtract numbers that are nearly equal */
  run_both(&k, &g, &operand[0], truth ? 0 : accuracy(common),
           nc_opinfo[op].types >= CLASS_FLOAT ? 1 : 1e-30);
}

static void test_ops(void **state) {
  Buffer operand[NC_MAXIN];
  for (int j = 0; j < NC_MAXIN; j++) operand[j] = new_buffer(SPACE);
  for (int op = 0; op < OP_COUNT; op++)
    for (int t = 0; t < 10; t++)
      for (int i = 0; i < 6; i++)
        if (nc_opinfo[op].kind != REDUCE_OP && op != OP_clone &&
            takes((Op)op, dtypes[t]))
          check_op((Op)op, dtypes[t], operand);
  for (int j = 0; j < NC_MAXIN; j++) drop(&operand[j]);
}

/* The result may be one of the operands. */
static void test_inplace(void **state) {
  Buffer t = new_buffer(SPACE);
  for (int i = 0; i < 40; i++) {
    const DType type = dtypes[1 + below(9)];
    TensorIter k = new_loop(OP_mul, type, 3), g;
    set_sizes(&k, (int)below(3), 2500);
    const int64_t reach = set_steps(&k, 0);
    memcpy(k.step[1], k.step[0], sizeof k.step[0]);
    k.number[2] = nc_category(type) == NC_FLOAT ? nc_float(2) : nc_int(3);
    g = k;
    fill(&t, type, 0);
    place(&k, &g, 0, &t, reach);
    k.p[1] = k.p[0];
    g.p[1] = g.p[0];
    run_both(&k, &g, &t, accuracy(type), 1e-30);
  }
  drop(&t);
}

/*
** Copies
*/
/* The type that a copy computes in. */
static DType copy_type(DType y, DType x) {
  return nc_category(x) != NC_FLOAT && nc_category(y) == NC_FLOAT ? y : x;
}

static void check_copy(DType from, DType to, Buffer *y, Buffer *x) {
  TensorIter k = new_loop(OP_clone, copy_type(to, from), 2), g;
  int64_t reach[2];
  k.type[0] = to;
  k.type[1] = from;
  set_sizes(&k, (int)below(5), 2500);
  reach[0] = set_steps(&k, 0);
  reach[1] = set_steps(&k, 1);
  g = k;
  fill(x, from, 4);
  clear(y);
  place(&k, &g, 0, y, reach[0]);
  if (from == to && below(8) == 0) set_number(&k, &g, 1, to, random_scalar(to));
  else place(&k, &g, 1, x, reach[1]);
  run_both(&k, &g, y, 0, 0);
}

static void test_copies(void **state) {
  Buffer y = new_buffer(SPACE), x = new_buffer(SPACE);
  for (int a = 0; a < 10; a++)
    for (int b = 0; b < 10; b++)
      for (int i = 0; i < (a == b ? 60 : 8); i++)
        check_copy(dtypes[a], dtypes[b], &y, &x);
  drop(&y);
  drop(&x);
}

/* A transposed operand, tiles of which lie at the edges, between other
   dimensions: copies, casts, and sums with one that is not transposed. */
static TensorIter transposed_loop(DType type, DType to) {
  static const int64_t liked[] = { 8, 31, 32, 33, 64, 66, 128, 130 };
  const int outer = below(2) ? 1 : 2, other = 3 - outer;
  TensorIter k = new_loop(OP_clone, copy_type(to, type), 2);
  k.type[0] = to;
  k.type[1] = type;
  k.nd = 3;
  k.size[0] = ANYOF(liked);
  k.size[1] = ANYOF(liked);
  k.size[2] = 1 + below(2);
  k.n = k.size[0] * k.size[1] * k.size[2];
  k.step[0][0] = 1;
  k.step[0][1] = k.size[0];
  k.step[0][2] = k.size[0] * k.size[1];
  k.step[1][outer] = 1;
  k.step[1][0] = k.size[outer];
  k.step[1][other] = k.size[outer] * k.size[0];
  if (type != to || type == DT_b8 || below(3) > 0) return k;
  k.op = OP_add;
  k.nargs = 3;
  k.type[2] = type;
  memcpy(k.step[2], k.step[0], sizeof k.step[0]);
  return k;
}

static void test_transposes(void **state) {
  enum { ROOM = 300000 };
  Buffer t[3] = { new_buffer(ROOM), new_buffer(ROOM), new_buffer(ROOM) };
  for (int i = 0; i < 90; i++) {
    const DType type = ANYOF(dtypes);
    TensorIter k = transposed_loop(type, below(4) ? type : ANYOF(dtypes));
    TensorIter g = k;
    fill(&t[1], type, 4);
    fill(&t[2], type, 4);
    clear(&t[0]);
    for (int j = 0; j < k.nargs; j++) set_operand(&k, &g, j, &t[j], 0);
    run_both(&k, &g, &t[0], 0, 0);
  }
  for (int j = 0; j < 3; j++) drop(&t[j]);
}

/* Many small matrices are not transposed by tiles, which are large. */
static void test_small_matrices(void **state) {
  enum { SIDE = 8, MANY = 200, ALL = MANY * SIDE * SIDE };
  Buffer y = new_buffer(ALL * 4), x = new_buffer(ALL * 4);
  TensorIter k = { .op = OP_clone,
                   .common_dtype = DT_f32,
                   .nargs = 2,
                   .nd = 3,
                   .n = ALL,
                   .size = { SIDE, SIDE, MANY },
                   .type = { DT_f32, DT_f32 },
                   .step = { { 1, SIDE, SIDE * SIDE },
                             { SIDE, 1, SIDE * SIDE } } };
  TensorIter g = k;
  fill(&x, DT_f32, 0);
  set_operand(&k, &g, 0, &y, 0);
  set_operand(&k, &g, 1, &x, 0);
  const long long before = emu_count("threads");
  run_both(&k, &g, &y, 0, 0);
  assert_true(emu_count("threads") - before <= ALL / 2);
  drop(&y);
  drop(&x);
}

/*
** Beyond 32 bits
*/
static int64_t seen, pieces;
static char *bottom, *top;

static int note_chunk(const Device *unused, const TensorIter *k) {
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

static void test_chunks(void **state) {
  static char base[4096];
  char *p = (char *)(((uintptr_t)base + 63) / 64 * 64);
  TensorIter k = new_loop(OP_clone, DT_f32, 2);
  k.p[0] = k.p[1] = bottom = top = p;
  k.nd = 1;
  k.n = k.size[0] = 5000000001;
  k.step[0][0] = k.step[1][0] = 1;
  ok(nc_in_chunks(d, &k, 1, note_chunk));
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
  ok(nc_in_chunks(d, &k, 2, note_chunk));
  assert_int_equal(seen, 12);
  assert_ptr_equal(top, p + 4 * (((int64_t)3 << 33) + 2));
}

static void test_divisors(void **state) {
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

/* An operation that no kernel computes in that type is refused. */
static void test_refused(void **state) {
  Buffer t = new_buffer(64);
  TensorIter k = new_loop(OP_exp, DT_i32, 2);
  k.n = 1;
  k.p[0] = k.p[1] = t.there;
  fails(d->run(d, &k), NC_EDTYPE, "no CUDA kernel of it for int32");
  drop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_divisors),
    cmocka_unit_test(test_chunks),
    cmocka_unit_test(test_ops),
    cmocka_unit_test(test_inplace),
    cmocka_unit_test(test_small_matrices),
    cmocka_unit_test(test_copies),
    cmocka_unit_test(test_transposes),
    cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
