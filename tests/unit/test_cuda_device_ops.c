/* SPDX-License-Identifier: MIT */
/*
** test_cuda_device_ops.c - what a CUDA device does beside rows and products,
** against the CPU's own functions: random shapes, layouts and types.
*/
#include "tests/unit/cpu_vs_device.h"

static double accuracy(DType t) {
  return t == DT_f64 ? 1e-13 : t == DT_f32 ? 1e-5 : t == DT_f16 ? 1e-3 : 8e-3;
}

/*
** Lines
*/
static int64_t picked(const Tensor *x, unsigned dims, int others) {
  int64_t n = 1;
  for (int i = 0; i < x->nd; i++)
    if ((int)(dims >> i & 1) != others) n *= x->size[i];
  return n;
}

/* The same call on both devices, with results of their own. */
static void bothlines(DimCall *c, DimCall *g, Twin x, DType type, int nd,
                      const int64_t size[], int withy) {
  Twin y;
  g->op = c->op;
  g->dims = c->dims;
  g->correction = c->correction;
  c->x = x.cpu;
  g->x = x.gpu;
  c->lines = g->lines = picked(x.cpu, c->dims, 1);
  c->length = g->length = picked(x.cpu, c->dims, 0);
  c->y = c->at = g->y = g->at = NULL;
  if (withy) {
    y = blank(type, nd, size);
    c->y = y.cpu, g->y = y.gpu;
  }
  if (c->op == DIM_ARGMAX || c->op == DIM_ARGMIN || c->op == DIM_CUMMAX ||
      c->op == DIM_CUMMIN) {
    y = blank(DT_i64, nd, size);
    c->at = y.cpu, g->at = y.gpu;
  }
  ok(nc_cpu.dim_op(&nc_cpu, c));
  ok(d->dim_op(d, g));
}

static void droplines(DimCall *c) {
  nc_release(c->y);
  nc_release(c->at);
}

static void onefold(DimOp op, DType type, int nd, const int64_t size[],
                    unsigned dims, int odd) {
  DimCall c = { .op = op, .dims = dims, .correction = (double)below(3) }, g;
  Twin x = tensor(type, nd, size, odd);
  int64_t kept[NC_MAXDIM];
  int n = 0;
  for (int i = 0; i < nd; i++)
    if (!(dims >> i & 1)) kept[n++] = size[i];
  bothlines(&c, &g, x, type, n, kept,
            (op != DIM_ARGMAX && op != DIM_ARGMIN) || below(2));
  if (c.y) same(c.y, g.y, accuracy(type), 1e-3);
  if (c.at) same(c.at, g.at, 0, 0);
  droplines(&c);
  droplines(&g);
  drop(x);
}

static void test_folds(void **unused) {
  static const DimOp ops[] = { DIM_ARGMAX, DIM_ARGMIN, DIM_VAR, DIM_STD,
                               DIM_LOGSUMEXP };
  (void)unused;
  for (int i = 0; i < 400; i++) {
    const DimOp op = ANYOF(ops);
    const int extreme = op == DIM_ARGMAX || op == DIM_ARGMIN;
    const int nd = (int)below(5);
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 20 : 4);
    onefold(op, extreme ? ANYOF(wholes) : ANYOF(floats), nd, size,
            below(4) ? (unsigned)below(1 << nd) : ~0u, below(2) ? 0 : 30);
  }
}

/* Long lines, which are cut in pieces; in both directions. */
static void test_longfolds(void **unused) {
  const int64_t one = 60000, tall[2] = { 9000, 3 }, many[2] = { 5, 5000 };
  (void)unused;
  for (DimOp op = DIM_ARGMAX; op <= DIM_LOGSUMEXP; op++) {
    onefold(op, DT_f32, 1, &one, 1, 0);
    onefold(op, DT_f16, 1, &one, ~0u, 0);
    onefold(op, DT_f64, 2, tall, 1, 0);
    onefold(op, DT_f32, 2, many, 2, 0);
    onefold(op, DT_bf16, 2, many, 3, 0);
  }
  onefold(DIM_ARGMAX, DT_i8, 1, &one, 1, 0);
  onefold(DIM_ARGMIN, DT_u8, 2, tall, 1, 0);
  onefold(DIM_ARGMAX, DT_b8, 2, many, 2, 0);
  onefold(DIM_ARGMAX, DT_f32, 1, &one, 1, 20000);
}

/* A mean far from 0 costs no accuracy. */
static void test_farmean(void **unused) {
  const int64_t size[2] = { 3, 700 };
  const int64_t step[2] = { 700, 1 };
  Twin x = vector(DT_f32, 2100, 0);
  DimCall c = { .op = DIM_VAR, .dims = 2, .correction = 1 }, g;
  (void)unused;
  for (int64_t i = 0; i < 2100; i++)
    put(x.cpu, i, 1e5 + (double)below(256) / 128);
  nc_release(x.gpu);
  x.gpu = twin(x.cpu);
  shape(x, 2, size, step, 0);
  bothlines(&c, &g, x, DT_f32, 1, size, 1);
  same(c.y, g.y, 1e-5, 0);
  droplines(&c);
  droplines(&g);
  drop(x);
}

static void test_empty(void **unused) {
  const int64_t size[2] = { 3, 0 };
  (void)unused;
  for (DimOp op = DIM_VAR; op <= DIM_LOGSUMEXP; op++) {
    onefold(op, DT_f32, 2, size, 2, 0);
    onefold(op, DT_f64, 2, size, 3, 0);
    onefold(op, DT_f16, 2, size, 1, 0);
  }
}

/* As far as nan goes: what comes after it in a cumsum, too. */
static void onesweep(DimOp op, DType type, int nd, const int64_t size[],
                     int dim, int odd) {
  DimCall c = { .op = op, .dims = 1u << dim }, g;
  Twin x = tensor(type, nd, size, odd);
  const double length = nd ? (double)size[dim] : 1;
  bothlines(&c, &g, x, type, nd, size,
            (op != DIM_CUMMAX && op != DIM_CUMMIN) || below(2));
  if (c.y)
    same(c.y, g.y, accuracy(type),
         op == DIM_SOFTMAX  ? 1e-6
         : op == DIM_CUMSUM ? sqrt(length)
                            : 1);
  if (c.at) same(c.at, g.at, 0, 0);
  droplines(&c);
  droplines(&g);
  drop(x);
}

static DType sweeptype(DimOp op) {
  return op == DIM_CUMSUM && below(3) == 0 ? DT_i64 : ANYOF(floats);
}

static void test_sweeps(void **unused) {
  (void)unused;
  for (int i = 0; i < 300; i++) {
    const DimOp op = (DimOp)below(DIM_CUMSUM + 1);
    const int nd = (int)below(4), dim = nd ? (int)below(nd) : 0;
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 24 : 5);
    if (nd && below(4) == 0) size[dim] = 1 + below(700);
    onesweep(op, sweeptype(op), nd, size, dim, below(4) ? 0 : 40);
  }
}

/* Lines of every length that is treated in its own way. */
static void test_longsweeps(void **unused) {
  static const int64_t length[] = { 64,   128,   129,   512,   1024, 1028,
                                    4096, 16384, 16400, 20001, 40000 };
  (void)unused;
  for (int i = 0; i < COUNT(length); i++) {
    const int64_t size[2] = { length[i] > 4096 ? 1 : 3, length[i] };
    const int64_t turned[2] = { length[i], 3 };
    for (DimOp op = DIM_SOFTMAX; op <= DIM_CUMSUM; op++) {
      onesweep(op, floats[i % 4], 2, size, 1, 0);
      onesweep(op, floats[(i + 1) % 4], 2, turned, 0, 0);
    }
    onesweep(DIM_CUMSUM, DT_i64, 2, size, 1, 0);
  }
}

/* What elements up to each come to, beside their sum; products of few, which
   no type is too small for. */
static void test_scans(void **unused) {
  static const DimOp ops[] = { DIM_CUMPROD, DIM_LOGCUMSUMEXP, DIM_CUMMAX,
                               DIM_CUMMIN };
  (void)unused;
  for (int i = 0; i < 300; i++) {
    const DimOp op = ANYOF(ops);
    const int nd = (int)below(4), dim = nd ? (int)below(nd) : 0;
    const int extreme = op == DIM_CUMMAX || op == DIM_CUMMIN;
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 24 : 5);
    if (nd && op != DIM_CUMPROD && below(3) == 0) size[dim] = 1 + below(1500);
    onesweep(op,
             extreme                              ? ANYOF(wholes)
             : op == DIM_CUMPROD && below(4) == 0 ? DT_i64
                                                  : ANYOF(floats),
             nd, size, dim, below(4) ? 0 : 40);
  }
}

/* Lines of integers so long that they are summed one by one; they wrap. */
static void test_wholesums(void **unused) {
  const int64_t size[2] = { 2, 1 << 20 }, step[2] = { size[1] + 4, 1 };
  Twin x = vector(DT_i64, 2 * step[0], 0);
  DimCall c = { .op = DIM_CUMSUM, .dims = 2 }, g;
  (void)unused;
  put(x.cpu, 5, 0x1p62);
  put(x.cpu, 7, 0x1p62);
  nc_release(x.gpu);
  x.gpu = twin(x.cpu);
  shape(x, 2, size, step, 2);
  bothlines(&c, &g, x, DT_i64, 2, size, 1);
  same(c.y, g.y, 0, 0);
  droplines(&c);
  droplines(&g);
  drop(x);
}

/* In pieces. */
static void test_longscans(void **unused) {
  const int64_t one = 40001, tall[2] = { 9000, 3 };
  (void)unused;
  for (DimOp op = DIM_CUMPROD; op <= DIM_CUMMIN; op++) {
    const int extreme = op == DIM_CUMMAX || op == DIM_CUMMIN;
    const DType type = extreme ? DT_i8 : op == DIM_CUMPROD ? DT_i64 : DT_f32;
    onesweep(op, type, 1, &one, 0, 0);
    onesweep(op, type, 2, tall, 0, 0);
    if (extreme) onesweep(op, DT_f64, 1, &one, 0, 9000);
    if (extreme) onesweep(op, DT_f16, 2, tall, 0, 9000);
  }
}

/* Lines kept in shared memory, of which there must be many; or in that and
   registers, once they are longer. */
static void test_sharedsoftmax(void **unused) {
  const int64_t size[2] = { nc_multiprocessors(d) / 2 + 1, 32800 / 4 };
  const int64_t longer[2] = { nc_multiprocessors(d) / 2 + 1, 128256 };
  (void)unused;
  onesweep(DIM_SOFTMAX, DT_f64, 2, size, 1, 0);
  onesweep(DIM_SOFTMAX, DT_bf16, 2, longer, 1, 0);
  onesweep(DIM_LOG_SOFTMAX, DT_bf16, 2, longer, 1, 40);
}

/*
** Sequences, random numbers
*/
static void onesequence(DType type, int64_t n, FillRangeCall s) {
  FillRangeCall g = s;
  ok(nc_new(&s.y, &nc_cpu, type, 1, &n));
  ok(nc_new(&g.y, d, type, 1, &n));
  ok(nc_cpu.fill_range(&nc_cpu, &s));
  ok(d->fill_range(d, &g));
  same(s.y, g.y, 0, 0);
  nc_release(s.y);
  nc_release(g.y);
}

static void test_sequences(void **unused) {
  static const int64_t lengths[] = { 0, 1, 2, 3, 7, 1000, 5001 };
  (void)unused;
  for (int i = 0; i < COUNT(lengths); i++)
    for (DType t = DT_u8; t < DT_COUNT; t++) {
      FillRangeCall s = { .start = nc_float(-3.7),
                          .end = nc_float(91.3),
                          .step = nc_float(0.1) };
      onesequence(t, lengths[i], s);
      s.spread = 1;
      onesequence(t, lengths[i], s);
      s = (FillRangeCall){ .start = nc_int(INT64_MAX - 5), .step = nc_int(3) };
      if (nc_category(t) == NC_INT) onesequence(t, lengths[i], s);
    }
}

static void onedraw(DType type, int64_t n, RandomFillCall w) {
  RandomFillCall g = w;
  w.key = g.key = 12345 + ((uint64_t)below(1 << 30) << 32);
  w.block = g.block = ((uint64_t)1 << 32) - 3;
  ok(nc_new(&w.y, &nc_cpu, type, 1, &n));
  ok(nc_new(&g.y, d, type, 1, &n));
  ok(nc_cpu.random_fill(&nc_cpu, &w));
  ok(d->random_fill(d, &g));
  same(w.y, g.y, 0, 0);
  nc_release(w.y);
  nc_release(g.y);
}

static void test_draws(void **unused) {
  static const int64_t lengths[] = { 0, 1, 4, 6, 1003, 4096 };
  static const int bits[] = { 24, 11, 8, 53 };
  (void)unused;
  for (int i = 0; i < COUNT(lengths); i++) {
    for (int k = 0; k < COUNT(floats); k++) {
      RandomFillCall w = { .kind = RANDOM_UNIFORM,
                           .wide = floats[k] == DT_f64,
                           .bits = bits[k],
                           .a = -2,
                           .b = 5,
                           .limit = 2.9 };
      onedraw(floats[k], lengths[i], w);
      w.kind = RANDOM_NORMAL;
      onedraw(floats[k], lengths[i], w);
    }
    for (DType t = DT_b8; t < DT_COUNT; t++) {
      RandomFillCall w = { .kind = RANDOM_INTEGERS,
                           .range = t == DT_b8 ? 2 : 100 };
      onedraw(t, lengths[i], w);
    }
    RandomFillCall w = { .kind = RANDOM_INTEGERS,
                         .wide = 1,
                         .low = -7,
                         .range = ((uint64_t)1 << 63) + 11 };
    onedraw(DT_i64, lengths[i], w);
    w.wide = 0;
    w.range = ((uint64_t)1 << 32) - 5;
    onedraw(DT_i64, lengths[i], w);
  }
}

/*
** Places
*/
static void test_places(void **unused) {
  const int64_t size[2] = { 3, 50 }, step[2] = { 150, 3 };
  Twin of = vector(DT_f32, 450, 0), given = indices(1000, 50), offset;
  (void)unused;
  shape(of, 2, size, step, 0);
  offset = places(given, of, 1);
  same(offset.cpu, offset.gpu, 0, 0);
  nc_release(given.gpu);
  put(given.cpu, 700, 51);
  given.gpu = twin(given.cpu);
  deviceplaces(offset, given, of, 1); /* told by who waits */
  assert_int_equal(d->synchronize(d), NC_EINDEX);
  says("index 51 is outside dim 2 of size 50");
  ok(d->synchronize(d)); /* once */
  drop(of);
  drop(given);
  drop(offset);
}

static void onetrues(Twin mask, const NonzeroCall *as) {
  NonzeroCall c = *as, g = *as;
  Twin y;
  c.mask = mask.cpu;
  g.mask = mask.gpu;
  c.y = &y.cpu;
  g.y = &y.gpu;
  ok(nc_cpu.nonzero(&nc_cpu, &c));
  ok(d->nonzero(d, &g));
  assert_int_equal(y.cpu->nd, y.gpu->nd);
  assert_int_equal(y.cpu->size[0], y.gpu->size[0]);
  same(y.cpu, y.gpu, 0, 0);
  drop(y);
}

static void test_trues(void **unused) {
  static const int64_t lengths[] = { 0, 1, 63, 64, 65, 1000, 16384, 40000 };
  (void)unused;
  for (int i = 0; i < COUNT(lengths); i++)
    for (int rare = 0; rare < 3; rare++) {
      const int64_t n = lengths[i];
      Twin mask = vector(DT_b8, n, 0);
      NonzeroCall t = { .nd = 1, .size = { n }, .step = { 3 } };
      for (int64_t k = 0; rare && k < n; k++)
        put(mask.cpu, k, rare == 1 ? below(500) == 0 : 1);
      nc_release(mask.gpu);
      mask.gpu = twin(mask.cpu);
      onetrues(mask, &t);
      t.coordinates = 1;
      onetrues(mask, &t);
      if (n % 8 == 0) {
        NonzeroCall s = { .nd = 3,
                          .size = { n / 8, 2, 4 },
                          .step = { 100, 50, 2 } };
        onetrues(mask, &s);
        s.coordinates = 1;
        onetrues(mask, &s);
      }
      drop(mask);
    }
}

/* A mask of no dimensions has a coordinate-less row for a true. */
static void test_lonetrue(void **unused) {
  Twin mask = vector(DT_b8, 1, 0);
  NonzeroCall t = { .coordinates = 1, .nd = 0 };
  (void)unused;
  shape(mask, 0, NULL, NULL, 0);
  onetrues(mask, &t);
  drop(mask);
}

/*
** Gather and scatter: `dim' of x is picked from.
*/
static void onegather(DType type, int nd, const int64_t size[], int dim,
                      int64_t picks) {
  const IndexCall g = { .picked = 1u << dim, .at = dim };
  int64_t shaped[NC_MAXDIM];
  Twin x = tensor(type, nd, size, 0), given = indices(picks, size[dim]);
  Twin offset = places(given, x, dim), other;
  memcpy(shaped, size, sizeof shaped);
  shaped[dim] = picks;
  other = blank(type, nd, shaped);
  bothpick(GET, g, x, other, offset);
  same(other.cpu, other.gpu, 0, 0);
  drop(x);
  drop(given);
  drop(offset);
  drop(other);
}

static void test_gather(void **unused) {
  (void)unused;
  for (int i = 0; i < 200; i++) {
    const int nd = 1 + (int)below(4);
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 17 : 4);
    if (below(3) == 0) size[nd - 1] = 16 * (1 + below(4));
    onegather(ANYOF(wholes), nd, size, (int)below(nd), below(40));
  }
}

/* Each place is written once, so that the result is certain. */
static void onescatter(DType type, int64_t rows, int64_t length, int distinct) {
  const int64_t size[2] = { rows, length }, step[2] = { length, 1 };
  const int64_t some[2] = { rows / 2, length };
  const IndexCall g = { .picked = 1, .at = 0, .distinct = distinct };
  Twin x = vector(type, rows * length, 0);
  Twin other = vector(type, rows / 2 * length, 0);
  Twin offset = indices(rows / 2, 1);
  shape(x, 2, size, step, 0);
  shape(other, 2, some, step, 0);
  for (int64_t i = 0; i < rows / 2; i++)
    put(offset.cpu, i, (double)((rows - 1 - 2 * i) * length));
  nc_release(offset.gpu);
  offset.gpu = twin(offset.cpu);
  bothpick(PUT, g, x, other, offset);
  same(x.cpu, x.gpu, 0, 0);
  drop(x);
  drop(other);
  drop(offset);
}

static void test_scatter(void **unused) {
  (void)unused;
  for (int i = 0; i < COUNT(wholes); i++) {
    onescatter(wholes[i], 40, 1, 1);
    onescatter(wholes[i], 40, 7, 0);
    onescatter(wholes[i], 12, 64, 0);
  }
}

/* Of several for one place any one stays, whole. */
static void test_collisions(void **unused) {
  Twin x = vector(DT_f32, 4, 0), other = vector(DT_f32, 500, 0);
  Twin offset = indices(500, 1);
  IndexCall g = { .picked = 1, .at = 0 };
  float y[4], v[500];
  (void)unused;
  for (int64_t i = 0; i < 500; i++) put(offset.cpu, i, (double)(i % 4));
  nc_release(offset.gpu);
  offset.gpu = twin(offset.cpu);
  g.x = x.gpu, g.other = other.gpu, g.offset = offset.gpu;
  ok(d->index_write(d, &g));
  ok(d->tohost(d, y, nc_data(x.gpu), sizeof y, 0));
  memcpy(v, nc_data(other.cpu), sizeof v);
  for (int i = 0; i < 4; i++) {
    int found = 0;
    for (int k = i; k < 500; k += 4) found |= v[k] == y[i];
    assert_true(found);
  }
  drop(x);
  drop(other);
  drop(offset);
}

static void test_wrongscatter(void **unused) {
  (void)unused;
  wrongly(PUT, 2);
}

static void test_expect(void **unused) {
  Twin x = vector(DT_b8, 1, 0);
  AssertCall e = { .x = x.gpu, .code = NC_EVALUE, .text = "a divisor is 0" };
  (void)unused;
  for (int truth = 0; truth < 2; truth++) {
    put(x.cpu, 0, truth);
    ok(d->copy(d, nc_data(x.gpu), nc_data(x.cpu), 1, &nc_cpu, 0));
    ok(d->device_assert(d, &e));
    if (truth) ok(d->synchronize(d));
    else assert_int_equal(d->synchronize(d), NC_EVALUE);
    if (!truth) says("a divisor is 0");
  }
  drop(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(folds),     TEST(longfolds),  TEST(farmean),       TEST(empty),
    TEST(sweeps),    TEST(longsweeps), TEST(sharedsoftmax), TEST(scans),
    TEST(wholesums), TEST(longscans),  TEST(sequences),     TEST(draws),
    TEST(places),    TEST(trues),      TEST(lonetrue),      TEST(gather),
    TEST(scatter),   TEST(collisions), TEST(wrongscatter),  TEST(expect),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
