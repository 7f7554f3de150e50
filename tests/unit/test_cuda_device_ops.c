/* SPDX-License-Identifier: MIT */
/*
** test_cuda_device_ops.c - the requests to a CUDA device other than pointwise
** operations, reductions, products and sorts, against the CPU's own functions:
** random shapes, layouts and types.
*/
#include "tests/unit/cpu_vs_device.h"

static double accuracy(DType t) {
  return t == DT_f64 ? 1e-13 : t == DT_f32 ? 1e-5 : t == DT_f16 ? 1e-3 : 8e-3;
}

/* nd random sizes: up to `most', or up to `few'. */
static void random_sizes(int64_t size[], int nd, int64_t most, int64_t few) {
  for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? most : few);
}

/*
** Requests along dimensions
*/
/* Elements along those dimensions of x that are in `dims'. */
static int64_t count_elements(const Tensor *x, unsigned dims) {
  int64_t n = 1;
  for (int i = 0; i < x->nd; i++)
    if (dims >> i & 1) n *= x->size[i];
  return n;
}

static int is_position(DimOp op) {
  return op == DIM_ARGMAX || op == DIM_ARGMIN || op == DIM_CUMMAX ||
         op == DIM_CUMMIN;
}

/* c of x, which is released, on both devices, with results of this shape; see
   is_close. */
static void check_dim_op(DimCall c, Twin x, int nd, const int64_t size[],
                         int with_values, double most, double unit) {
  Twin y = { NULL, NULL }, at = y;
  if (with_values) y = new_twin(x.cpu->dtype, nd, size);
  if (is_position(c.op)) at = new_twin(DT_i64, nd, size);
  c.lines = count_elements(x.cpu, ~c.dims);
  c.length = count_elements(x.cpu, c.dims);
  for (int i = 0; i < 2; i++) {
    c.x = half(x, i);
    c.y = half(y, i);
    c.at = half(at, i);
    ok(device(i)->dim_op(device(i), &c));
  }
  if (y.cpu) assert_close(y, most, unit);
  if (at.cpu) assert_close(at, 0, 0);
  drop(x, y, at);
}

/* The size below which errors of a reduction of n elements are absolute.  A
   logsumexp is max + log(sum of exp(x - max)), and where it is near 0 these two
   cancel: each is at most log(n) then, and has the error of the type that sums,
   not of the result's. */
static double reduce_unit(DimOp op, DType type, int64_t n) {
  const DType sums = type == DT_f64 ? DT_f64 : DT_f32;
  if (op != DIM_LOGSUMEXP) return 1e-3;
  return (1 + log((double)(n + 1))) * accuracy(sums) / accuracy(type);
}

static void check_reduce(DimOp op, DType type, int nd, const int64_t size[],
                         unsigned dims, int odd) {
  const DimCall c = { .op = op, .dims = dims, .correction = (double)below(3) };
  int64_t kept[NC_MAXDIM];
  int n = 0;
  for (int i = 0; i < nd; i++)
    if (!(dims >> i & 1)) kept[n++] = size[i];
  Twin x = random_tensor(type, nd, size, odd);
  check_dim_op(c, x, n, kept, !is_position(op) || below(2), accuracy(type),
               reduce_unit(op, type, count_elements(x.cpu, dims)));
}

static void test_reduce(void **state) {
  static const DimOp ops[] = { DIM_ARGMAX, DIM_ARGMIN, DIM_VAR, DIM_STD,
                               DIM_LOGSUMEXP };
  for (int i = 0; i < 400; i++) {
    const DimOp op = ANYOF(ops);
    const int nd = (int)below(5);
    int64_t size[NC_MAXDIM];
    random_sizes(size, nd, 20, 4);
    check_reduce(op, is_position(op) ? ANYOF(dtypes) : ANYOF(floats), nd, size,
                 below(4) ? (unsigned)below(1 << nd) : ~0u, below(2) ? 0 : 30);
  }
}

/* Long slices, which are cut in pieces; in both directions. */
static void test_long_reduce(void **state) {
  const int64_t one = 60000, tall[2] = { 9000, 3 }, many[2] = { 5, 5000 };
  for (DimOp op = DIM_ARGMAX; op <= DIM_LOGSUMEXP; op++) {
    check_reduce(op, DT_f32, 1, &one, 1, 0);
    check_reduce(op, DT_f16, 1, &one, ~0u, 0);
    check_reduce(op, DT_f64, 2, tall, 1, 0);
    check_reduce(op, DT_f32, 2, many, 2, 0);
    check_reduce(op, DT_bf16, 2, many, 3, 0);
  }
  check_reduce(DIM_ARGMAX, DT_i8, 1, &one, 1, 0);
  check_reduce(DIM_ARGMIN, DT_u8, 2, tall, 1, 0);
  check_reduce(DIM_ARGMAX, DT_b8, 2, many, 2, 0);
  check_reduce(DIM_ARGMAX, DT_f32, 1, &one, 1, 20000);
}

/* A mean far from 0 costs no accuracy. */
static void test_far_mean(void **state) {
  const DimCall c = { .op = DIM_VAR, .dims = 2, .correction = 1 };
  Twin x = random_matrix(DT_f32, 3, 700, 0);
  for (int64_t i = 0; i < 2100; i++)
    set_element(x.cpu, i, 1e5 + (double)below(256) / 128);
  upload(&x);
  check_dim_op(c, x, 1, x.cpu->size, 1, 1e-5, 0);
}

/* Sums of exponentials that are nearly 1. */
static void test_logsumexp_near_0(void **state) {
  const int64_t n = 100;
  const DimCall c = { .op = DIM_LOGSUMEXP, .dims = 2 };
  for (int t = 0; t < COUNT(floats); t++) {
    Twin x = random_matrix(floats[t], 50, n, 0);
    for (int64_t i = 0; i < 50 * n; i++)
      set_element(x.cpu, i, (double)below(64) / 512 - log((double)n));
    upload(&x);
    check_dim_op(c, x, 1, x.cpu->size, 1, accuracy(floats[t]),
                 reduce_unit(c.op, floats[t], n));
  }
}

static void test_empty(void **state) {
  const int64_t size[2] = { 3, 0 };
  for (DimOp op = DIM_VAR; op <= DIM_LOGSUMEXP; op++) {
    check_reduce(op, DT_f32, 2, size, 2, 0);
    check_reduce(op, DT_f64, 2, size, 3, 0);
    check_reduce(op, DT_f16, 2, size, 1, 0);
  }
}

/* A softmax or a scan, with nan among the elements if `odd'. */
static void check_scan(DimOp op, DType type, int nd, const int64_t size[],
                       int dim, int odd) {
  const DimCall c = { .op = op, .dims = 1u << dim };
  const double unit = op == DIM_SOFTMAX        ? 1e-6
                      : op == DIM_CUMSUM && nd ? sqrt((double)size[dim])
                                               : 1;
  Twin x = random_tensor(type, nd, size, odd);
  check_dim_op(c, x, nd, size, !is_position(op) || below(2), accuracy(type),
               unit);
}

/* A type that the scan takes; without products of halves, which overflow. */
static DType scan_type(DimOp op) {
  if (is_position(op)) return ANYOF(dtypes);
  if (op == DIM_CUMSUM && below(3) == 0) return DT_i64;
  if (op == DIM_CUMPROD && below(4) == 0) return DT_i64;
  return ANYOF(floats);
}

/* Random scans; slices of up to `longest' elements. */
static void check_scans(const DimOp ops[], int n, int64_t longest) {
  for (int i = 0; i < 300; i++) {
    const DimOp op = ops[below(n)];
    const int nd = (int)below(4), dim = nd ? (int)below(nd) : 0;
    int64_t size[NC_MAXDIM];
    random_sizes(size, nd, 24, 5);
    if (nd && op != DIM_CUMPROD && below(3) == 0)
      size[dim] = 1 + below(longest);
    check_scan(op, scan_type(op), nd, size, dim, below(4) ? 0 : 40);
  }
}

static void test_softmax_and_cumsum(void **state) {
  static const DimOp ops[] = { DIM_SOFTMAX, DIM_LOG_SOFTMAX, DIM_CUMSUM };
  check_scans(ops, COUNT(ops), 700);
}

static void test_other_scans(void **state) {
  static const DimOp ops[] = { DIM_CUMPROD, DIM_LOGCUMSUMEXP, DIM_CUMMAX,
                               DIM_CUMMIN };
  check_scans(ops, COUNT(ops), 1500);
}

/* Slices of every length that is treated in its own way. */
static void test_long_softmax_and_cumsum(void **state) {
  static const int64_t length[] = { 64,   128,   129,   512,   1024, 1028,
                                    4096, 16384, 16400, 20001, 40000 };
  for (int i = 0; i < COUNT(length); i++) {
    const int64_t size[2] = { length[i] > 4096 ? 1 : 3, length[i] };
    const int64_t tall[2] = { length[i], 3 };
    for (DimOp op = DIM_SOFTMAX; op <= DIM_CUMSUM; op++) {
      check_scan(op, floats[i % 4], 2, size, 1, 0);
      check_scan(op, floats[(i + 1) % 4], 2, tall, 0, 0);
    }
    check_scan(DIM_CUMSUM, DT_i64, 2, size, 1, 0);
  }
}

/* Slices of integers so long that they are summed one by one; they wrap. */
static void test_integer_cumsum(void **state) {
  const DimCall c = { .op = DIM_CUMSUM, .dims = 2 };
  const int64_t size[2] = { 2, 1 << 20 }, step[2] = { size[1] + 4, 1 };
  Twin x = random_vector(DT_i64, 2 * step[0], 0);
  set_element(x.cpu, 5, 0x1p62);
  set_element(x.cpu, 7, 0x1p62);
  upload(&x);
  set_shape(x, 2, size, step, 2);
  check_dim_op(c, x, 2, size, 1, 0, 0);
}

/* In pieces. */
static void test_long_scans(void **state) {
  const int64_t one = 40001, tall[2] = { 9000, 3 };
  for (DimOp op = DIM_CUMPROD; op <= DIM_CUMMIN; op++) {
    const DType type = is_position(op)     ? DT_i8
                       : op == DIM_CUMPROD ? DT_i64
                                           : DT_f32;
    check_scan(op, type, 1, &one, 0, 0);
    check_scan(op, type, 2, tall, 0, 0);
    if (is_position(op)) check_scan(op, DT_f64, 1, &one, 0, 9000);
    if (is_position(op)) check_scan(op, DT_f16, 2, tall, 0, 9000);
  }
}

/* Slices kept in shared memory, of which there must be many; or in that and
   registers, once they are longer. */
static void test_shared_softmax(void **state) {
  const int64_t size[2] = { nc_multiprocessors(d) / 2 + 1, 32800 / 4 };
  const int64_t longer[2] = { nc_multiprocessors(d) / 2 + 1, 128256 };
  check_scan(DIM_SOFTMAX, DT_f64, 2, size, 1, 0);
  check_scan(DIM_SOFTMAX, DT_bf16, 2, longer, 1, 0);
  check_scan(DIM_LOG_SOFTMAX, DT_bf16, 2, longer, 1, 40);
}

/*
** Ranges, random numbers
*/
static void check_range(DType type, int64_t n, FillRangeCall s) {
  Twin y = new_twin(type, 1, &n);
  for (int i = 0; i < 2; i++) {
    s.y = half(y, i);
    ok(device(i)->fill_range(device(i), &s));
  }
  assert_close(y, 0, 0);
  drop(y);
}

static void test_ranges(void **state) {
  static const int64_t lengths[] = { 0, 1, 2, 3, 7, 1000, 5001 };
  for (int i = 0; i < COUNT(lengths); i++)
    for (DType t = DT_u8; t < DT_COUNT; t++) {
      FillRangeCall s = { .start = nc_float(-3.7),
                          .end = nc_float(91.3),
                          .step = nc_float(0.1) };
      check_range(t, lengths[i], s);
      s.spread = 1;
      check_range(t, lengths[i], s);
      s = (FillRangeCall){ .start = nc_int(INT64_MAX - 5), .step = nc_int(3) };
      if (nc_category(t) == NC_INT) check_range(t, lengths[i], s);
    }
}

static void check_random(DType type, int64_t n, RandomFillCall w) {
  Twin y = new_twin(type, 1, &n);
  w.key = 12345 + ((uint64_t)below(1 << 30) << 32);
  w.block = ((uint64_t)1 << 32) - 3;
  for (int i = 0; i < 2; i++) {
    w.y = half(y, i);
    ok(device(i)->random_fill(device(i), &w));
  }
  assert_close(y, 0, 0);
  drop(y);
}

static void test_random(void **state) {
  static const int64_t lengths[] = { 0, 1, 4, 6, 1003, 4096 };
  static const int bits[] = { 24, 11, 8, 53 };
  for (int i = 0; i < COUNT(lengths); i++) {
    for (int k = 0; k < COUNT(floats); k++) {
      RandomFillCall w = { .kind = RANDOM_UNIFORM,
                           .wide = floats[k] == DT_f64,
                           .bits = bits[k],
                           .a = -2,
                           .b = 5,
                           .limit = 2.9 };
      check_random(floats[k], lengths[i], w);
      w.kind = RANDOM_NORMAL;
      check_random(floats[k], lengths[i], w);
    }
    for (DType t = DT_b8; t < DT_COUNT; t++) {
      RandomFillCall w = { .kind = RANDOM_INTEGERS,
                           .range = t == DT_b8 ? 2 : 100 };
      check_random(t, lengths[i], w);
    }
    RandomFillCall w = { .kind = RANDOM_INTEGERS,
                         .wide = 1,
                         .low = -7,
                         .range = ((uint64_t)1 << 63) + 11 };
    check_random(DT_i64, lengths[i], w);
    w.wide = 0;
    w.range = ((uint64_t)1 << 32) - 5;
    check_random(DT_i64, lengths[i], w);
  }
}

/*
** Indices
*/
static void test_resolve_index(void **state) {
  const int64_t size[2] = { 3, 50 }, step[2] = { 150, 3 };
  Twin of = random_vector(DT_f32, 450, 0), index = random_indices(1000, 50);
  set_shape(of, 2, size, step, 0);
  Twin offset = resolve(index, of, 1);
  assert_close(offset, 0, 0);
  set_element(index.cpu, 700, 51);
  upload(&index);
  ok(resolve_on(1, offset, index, of, 1)); /* reported by the next wait */
  fails(d->synchronize(d), NC_EINDEX, "index 51 is outside dim 2 of size 50");
  ok(d->synchronize(d)); /* once */
  drop(of, index, offset);
}

static void check_nonzero(Twin mask, NonzeroCall c) {
  Twin y;
  for (int i = 0; i < 2; i++) {
    c.mask = half(mask, i);
    c.y = i ? &y.gpu : &y.cpu;
    ok(device(i)->nonzero(device(i), &c));
  }
  assert_int_equal(y.cpu->nd, y.gpu->nd);
  assert_int_equal(y.cpu->size[0], y.gpu->size[0]);
  assert_close(y, 0, 0);
  drop(y);
}

static void test_nonzero(void **state) {
  static const int64_t lengths[] = { 0, 1, 63, 64, 65, 1000, 16384, 40000 };
  for (int i = 0; i < COUNT(lengths); i++)
    for (int rare = 0; rare < 3; rare++) {
      const int64_t n = lengths[i];
      Twin mask = random_vector(DT_b8, n, 0);
      NonzeroCall t = { .nd = 1, .size = { n }, .step = { 3 } };
      NonzeroCall s = { .nd = 3,
                        .size = { n / 8, 2, 4 },
                        .step = { 100, 50, 2 } };
      for (int64_t k = 0; rare && k < n; k++)
        set_element(mask.cpu, k, rare == 1 ? below(500) == 0 : 1);
      upload(&mask);
      for (int coordinates = 0; coordinates < 2; coordinates++) {
        t.coordinates = s.coordinates = coordinates;
        check_nonzero(mask, t);
        if (n % 8 == 0) check_nonzero(mask, s);
      }
      drop(mask);
    }
}

/* A mask of no dimensions has a row without coordinates for a true. */
static void test_nonzero_0d(void **state) {
  const NonzeroCall t = { .coordinates = 1, .nd = 0 };
  Twin mask = random_vector(DT_b8, 1, 0);
  set_shape(mask, 0, NULL, NULL, 0);
  check_nonzero(mask, t);
  drop(mask);
}

/*
** Advanced indexing along dim of x
*/
static void check_index_read(DType type, int nd, int64_t size[], int dim,
                             int64_t n) {
  const IndexCall g = { .indexed_dims = 1u << dim, .at = dim };
  Twin x = random_tensor(type, nd, size, 0);
  Twin index = random_indices(n, size[dim]), offset = resolve(index, x, dim);
  size[dim] = n;
  Twin other = new_twin(type, nd, size);
  index_both(READ, g, x, other, offset);
  assert_close(other, 0, 0);
  drop(x, index, offset, other);
}

static void test_index_read(void **state) {
  for (int i = 0; i < 200; i++) {
    const int nd = 1 + (int)below(4);
    int64_t size[NC_MAXDIM];
    random_sizes(size, nd, 17, 4);
    if (below(3) == 0) size[nd - 1] = 16 * (1 + below(4));
    check_index_read(ANYOF(dtypes), nd, size, (int)below(nd), below(40));
  }
}

/* Each place is written once, so that the result is certain. */
static void check_index_write(DType type, int64_t rows, int64_t length,
                              int distinct) {
  const IndexCall g = { .indexed_dims = 1, .at = 0, .distinct = distinct };
  Twin x = random_matrix(type, rows, length, 0);
  Twin other = random_matrix(type, rows / 2, length, 0);
  Twin offset = random_indices(rows / 2, 1);
  for (int64_t i = 0; i < rows / 2; i++)
    set_element(offset.cpu, i, (double)((rows - 1 - 2 * i) * length));
  upload(&offset);
  index_both(WRITE, g, x, other, offset);
  assert_close(x, 0, 0);
  drop(x, other, offset);
}

static void test_index_write(void **state) {
  for (int i = 0; i < COUNT(dtypes); i++) {
    check_index_write(dtypes[i], 40, 1, 1);
    check_index_write(dtypes[i], 40, 7, 0);
    check_index_write(dtypes[i], 12, 64, 0);
  }
}

/* Of several for one place any one stays, whole. */
static void test_collisions(void **state) {
  const IndexCall g = { .indexed_dims = 1, .at = 0 };
  Twin x = random_vector(DT_f32, 4, 0), other = random_vector(DT_f32, 500, 0);
  Twin offset = random_indices(500, 1);
  const float *v = nc_data(other.cpu);
  float y[4];
  for (int64_t i = 0; i < 500; i++) set_element(offset.cpu, i, (double)(i % 4));
  upload(&offset);
  ok(index_on(1, WRITE, g, x, other, offset));
  ok(d->tohost(d, y, nc_data(x.gpu), sizeof y, 0));
  for (int i = 0; i < 4; i++) {
    int found = 0;
    for (int k = i; k < 500; k += 4) found |= v[k] == y[i];
    assert_true(found);
  }
  drop(x, other, offset);
}

static void test_bad_indices(void **state) {
  check_bad_indices(WRITE, 2);
}

static void test_device_assert(void **state) {
  Twin x = random_vector(DT_b8, 1, 0);
  for (int truth = 0; truth < 2; truth++) {
    AssertCall e = { .code = NC_EVALUE, .text = "a divisor is 0" };
    set_element(x.cpu, 0, truth);
    upload(&x);
    e.x = x.gpu;
    ok(d->device_assert(d, &e));
    if (truth) ok(d->synchronize(d));
    else fails(d->synchronize(d), NC_EVALUE, "a divisor is 0");
  }
  drop(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(reduce),
    TEST(long_reduce),
    TEST(far_mean),
    TEST(logsumexp_near_0),
    TEST(empty),
    TEST(softmax_and_cumsum),
    TEST(long_softmax_and_cumsum),
    TEST(shared_softmax),
    TEST(other_scans),
    TEST(integer_cumsum),
    TEST(long_scans),
    TEST(ranges),
    TEST(random),
    TEST(resolve_index),
    TEST(nonzero),
    TEST(nonzero_0d),
    TEST(index_read),
    TEST(index_write),
    TEST(collisions),
    TEST(bad_indices),
    TEST(device_assert),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
