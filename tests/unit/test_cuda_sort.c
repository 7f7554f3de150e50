/* SPDX-License-Identifier: MIT */
/*
** test_cuda_sort.c - what a CUDA device sorts, searches and folds by index,
** against the CPU's own functions, bit for bit.
*/
#include "tests/unit/cpu_vs_device.h"
#include "cuda/indexing/advanced_index.h"
#include "cuda/sort/sort.h"

/* The same bytes. */
static void equal(const Tensor *c, const Tensor *g) {
  const int64_t bytes = nc_numel(c) * nc_dtypesize(c->dtype);
  void *back = malloc((size_t)bytes);
  assert_non_null(back);
  ok(d->tohost(d, back, nc_data(g), bytes, 0));
  if (memcmp(back, nc_data(c), (size_t)bytes) != 0) same(c, g, 0, 0);
  assert_memory_equal(back, nc_data(c), (size_t)bytes);
  free(back);
}

/*
** Sorting
*/
static void onesort(Twin x, int dim, int descending, int64_t from, int64_t keep,
                    int withy) {
  SortCall s = {
    .x = x.cpu, .dim = dim, .descending = descending, .from = from, .keep = keep
  };
  int64_t size[NC_MAXDIM];
  Twin y = { NULL, NULL }, at;
  memcpy(size, x.cpu->size, sizeof size);
  if (x.cpu->nd > 0) size[dim] = keep;
  if (withy) y = blank(x.cpu->dtype, x.cpu->nd, size);
  at = blank(DT_i64, x.cpu->nd, size);
  s.y = y.cpu, s.at = at.cpu;
  ok(nc_cpu.sort(&nc_cpu, &s));
  s.x = x.gpu, s.y = y.gpu, s.at = at.gpu;
  ok(d->sort(d, &s));
  equal(at.cpu, at.gpu);
  if (withy) equal(y.cpu, y.gpu);
  drop(at);
  drop(y);
}

/* Any ranks: all, the first ones, one, or some in between. */
static void someranks(Twin x, int dim) {
  const int64_t n = x.cpu->nd ? x.cpu->size[dim] : 1;
  const int down = (int)below(2), withy = (int)below(2);
  const int64_t from = below(n);
  onesort(x, dim, down, 0, n, withy);
  onesort(x, dim, !down, 0, 1 + below(n), 1);
  onesort(x, dim, down, from, 1, withy);
  onesort(x, dim, !down, from, 1 + below(n - from), 1);
}

static void test_shortlines(void **unused) {
  (void)unused;
  for (int i = 0; i < 150; i++) {
    const int nd = (int)below(5), dim = nd ? (int)below(nd) : 0;
    int64_t size[NC_MAXDIM];
    Twin x;
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 20 : 4);
    if (nd && below(4) == 0) size[dim] = 1 + below(600);
    x = tensor(ANYOF(wholes), nd, size, below(2) ? 0 : 10);
    someranks(x, dim);
    drop(x);
  }
}

/* Lengths at which another way begins, of every type. */
static void test_longlines(void **unused) {
  static const int64_t length[] = { 2048, 2049, 4096, 4097, 9001 };
  (void)unused;
  for (int t = 0; t < COUNT(wholes); t++)
    for (int i = 0; i < COUNT(length); i++) {
      const int64_t size[2] = { 1 + below(2), length[i] };
      const int64_t turned[2] = { length[i], 2 };
      Twin x;
      if (below(2)) x = tensor(wholes[t], 2, size, i % 2 ? 0 : 50);
      else x = tensor(wholes[t], 2, turned, i % 2 ? 0 : 50);
      someranks(x, x.cpu->size[0] < 3);
      drop(x);
    }
}

/* Rows of `type', dense, as so many at a time as there is room for in `most'
   elements, or one by one if they have `alone'. */
static void onebatch(DType type, int64_t lines, int64_t n, int64_t alone,
                     int64_t most) {
  const int64_t size[2] = { lines, n }, step[2] = { n, 1 };
  const int64_t from = below(2) ? 0 : below(n), keep = 1 + below(n - from);
  const int64_t part[2] = { lines, keep };
  const int down = (int)below(2), withy = (int)below(4) > 0;
  Twin x = vector(type, lines * n, below(2) ? 0 : 20);
  Twin y = blank(type, 2, part), at = blank(DT_i64, 2, part);
  shape(x, 2, size, step, 0);
  SortCall s = { .x = x.cpu,
                 .y = y.cpu,
                 .at = at.cpu,
                 .dim = 1,
                 .descending = down,
                 .from = from,
                 .keep = keep };
  SortPlan k = { .order = nc_sort_order(type, down),
                 .slices = lines,
                 .bits = (int)nc_dtypesize(type) * 8,
                 .x = nc_data(x.gpu),
                 .n = (uint32_t)n,
                 .first = (uint32_t)from,
                 .keep = (uint32_t)keep,
                 .at = nc_data(at.gpu),
                 .y = withy ? nc_data(y.gpu) : NULL };
  ok(nc_cpu.sort(&nc_cpu, &s));
  ok(nc_sort_long(d, &k, alone, most));
  equal(at.cpu, at.gpu);
  if (withy) equal(y.cpu, y.gpu);
  drop(x);
  drop(y);
  drop(at);
}

static void test_batches(void **unused) {
  static const int64_t cases[][4] = {
    /* lines, n, alone, most */
    { 7, 300, 1 << 20, 1 << 20 },  /* together */
    { 7, 300, 1 << 20, 1024 },     /* two at a time, then one */
    { 5, 300, 300, 1 << 20 },      /* one by one */
    { 3, 256, 1 << 20, 1 },        /* though there is no room */
    { 300, 33, 1 << 20, 1 << 20 }, /* the number of a line: 9 bits */
    { 1, 5000, 1 << 20, 1 << 20 }, { 2, 4096, 1 << 20, 1 << 20 },
    { 6, 1, 1 << 20, 4 }, /* no bits within a line */
  };
  (void)unused;
  for (int t = 0; t < COUNT(wholes); t++)
    for (int i = 0; i < COUNT(cases); i++)
      onebatch(wholes[t], cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
}

/* What needs more bits than keys are said to have comes last, in order. */
static void test_told(void **unused) {
  const int64_t n = 400;
  Twin x = vector(DT_i64, n, 0), y = blank(DT_i64, 1, &n), at = y;
  int64_t *p = nc_data(x.cpu), back[400], places[400], few = 0;
  (void)unused;
  at = blank(DT_i64, 1, &n);
  for (int64_t i = 0; i < n; i++) p[i] = below(3) ? below(31) : -1 - i;
  for (int64_t i = 0; i < n; i++) few += p[i] >= 0;
  nc_release(x.gpu);
  x.gpu = twin(x.cpu);
  SortPlan k = { .bits = 64,
                 .key_bits = 5,
                 .x = nc_data(x.gpu),
                 .slices = 1,
                 .n = 400,
                 .keep = 400,
                 .y = nc_data(y.gpu),
                 .at = nc_data(at.gpu) };
  ok(nc_sort_long(d, &k, n, n));
  ok(d->tohost(d, back, nc_data(y.gpu), sizeof back, 0));
  ok(d->tohost(d, places, nc_data(at.gpu), sizeof places, 0));
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(back[i], p[places[i] - 1]);
    assert_int_equal(back[i] >= 0, i < few);
    if (i == 0 || i == few) continue;
    if (i < few) assert_true(back[i] >= back[i - 1]);
    if (i > few || back[i] == back[i - 1])
      assert_true(places[i] > places[i - 1]);
  }
  drop(x);
  drop(y);
  drop(at);
}

/* Each call of CUDA fails in turn, that for memory too: the sort says so and
   leaves nothing behind. */
static void test_sortfails(void **unused) {
  const int64_t size[2] = { 3, 5000 };
  Twin x = tensor(DT_f32, 2, size, 9);
  Twin y = blank(DT_f32, 2, size), at = blank(DT_i64, 2, size);
  SortCall s = { .x = x.cpu, .y = y.cpu, .at = at.cpu, .dim = 1, .keep = 5000 };
  int r = NC_ENOMEM, failed = 0;
  (void)unused;
  ok(nc_cpu.sort(&nc_cpu, &s));
  s.x = x.gpu, s.y = y.gpu, s.at = at.gpu;
  for (int i = 1; r != NC_OK; i++) {
    char lever[32];
    const int64_t live = d->memory->live;
    d->trim(d, 0);
    snprintf(lever, sizeof lever, "failat=%d", i);
    emu_set(lever);
    r = d->sort(d, &s);
    emu_set("failat=0");
    if (r != NC_OK) assert_int_equal(r, NC_ENOMEM);
    failed += r != NC_OK;
    assert_int_equal(d->memory->live, live);
  }
  assert_true(failed >= 6); /* two queries, two kernels, two sorts */
  equal(at.cpu, at.gpu);
  equal(y.cpu, y.gpu);
  drop(x);
  drop(y);
  drop(at);
}

/* Many spans; keys that differ in some of their digits only, or nowhere. */
static void test_digits(void **unused) {
  const int64_t n = 30000;
  (void)unused;
  for (int shift = 0; shift < 64; shift += 9) {
    Twin x = vector(DT_i64, n, 0);
    int64_t *p = nc_data(x.cpu);
    for (int64_t i = 0; i < n; i++) p[i] = below(200) << shift;
    nc_release(x.gpu);
    x.gpu = twin(x.cpu);
    onesort(x, 0, shift & 1, 0, n, 1);
    onesort(x, 0, shift & 1, 0, 3000, 1);
    onesort(x, 0, 0, n / 2, 1, 1);
    drop(x);
  }
  for (int k = 0; k < 2; k++) {
    Twin x = vector(k ? DT_f64 : DT_i32, n, 0);
    memset(nc_data(x.cpu), 0, (size_t)(n * nc_dtypesize(x.cpu->dtype)));
    nc_release(x.gpu);
    x.gpu = twin(x.cpu);
    onesort(x, 0, k, 0, n, 1);
    onesort(x, 0, k, 0, 100, 1);
    drop(x);
  }
}

/*
** Searching
*/
static void onesearch(DType type, int rows, int64_t n, int64_t m, int right) {
  const int64_t many[2] = { rows, n }, values[2] = { rows ? rows : 1, m };
  Twin seq = blank(type, rows ? 2 : 1, rows ? many : many + 1);
  Twin raw = vector(type, nc_numel(seq.cpu), 9), x, at;
  const int64_t step[2] = { n, 1 }, xstep[2] = { m, 1 };
  x = vector(type, values[0] * m, 9);
  shape(raw, seq.cpu->nd, seq.cpu->size, rows ? step : step + 1, 0);
  shape(x, 2, values, xstep, 0);
  at = blank(DT_i64, seq.cpu->nd, seq.cpu->size);
  SortCall s = {
    .x = raw.cpu, .y = seq.cpu, .at = at.cpu, .dim = rows > 0, .keep = n
  };
  ok(nc_cpu.sort(&nc_cpu, &s));
  drop(at);
  nc_release(seq.gpu);
  seq.gpu = twin(seq.cpu);
  at = blank(DT_i64, 2, values);
  SearchCall q = { .at = at.cpu, .seq = seq.cpu, .x = x.cpu, .right = right };
  ok(nc_cpu.search(&nc_cpu, &q));
  q.at = at.gpu, q.seq = seq.gpu, q.x = x.gpu;
  ok(d->search(d, &q));
  equal(at.cpu, at.gpu);
  drop(seq);
  drop(raw);
  drop(x);
  drop(at);
}

static void test_search(void **unused) {
  static const DType types[] = { DT_i64, DT_f32, DT_f64 };
  (void)unused;
  for (int i = 0; i < 60; i++)
    onesearch(types[i % 3], (int)below(4), 1 + below(300), 1 + below(500),
              (int)below(2));
}

/*
** Folding by index
*/
/* `picks' slices of other into those of x along dim, many into one. */
static void onefold(DType type, IndexReduce fold, int nd, const int64_t size[],
                    int dim, int64_t picks, int distinct) {
  int64_t step[NC_MAXDIM], shaped[NC_MAXDIM], n = 1;
  const IndexCall g = {
    .picked = 1u << dim, .at = dim, .distinct = distinct, .fold = fold
  };
  Twin x, other, given = indices(picks, size[dim]), offset;
  for (int i = nd - 1; i >= 0; n *= size[i--]) step[i] = n;
  x = vector(type, n, 60);
  shape(x, nd, size, step, 0);
  if (distinct) {
    for (int64_t i = 0; i < picks; i++) put(given.cpu, i, (double)(picks - i));
    nc_release(given.gpu);
    given.gpu = twin(given.cpu);
  }
  memcpy(shaped, size, (size_t)nd * sizeof *size);
  shaped[dim] = picks;
  other = tensor(type, nd, shaped, 60);
  offset = places(given, x, dim);
  bothpick(FOLD, g, x, other, offset);
  same(x.cpu, x.gpu, 0, 0);
  drop(x);
  drop(other);
  drop(given);
  drop(offset);
}

static void test_accumulate(void **unused) {
  (void)unused;
  for (int i = 0; i < 250; i++) {
    const int nd = 1 + (int)below(4), dim = (int)below(nd);
    const int distinct = below(4) == 0;
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 12 : 3);
    onefold(ANYOF(wholes), (IndexReduce)below(INDEX_MIN + 1), nd, size, dim,
            1 + below(distinct ? size[dim] : 60), distinct);
  }
}

/* So many that their offsets are sorted by digits; long runs. */
static void test_longruns(void **unused) {
  const int64_t few = 3, many = 4000;
  (void)unused;
  onefold(DT_f32, INDEX_ADD, 1, &few, 0, 9000, 0);
  onefold(DT_f16, INDEX_ADD, 1, &many, 0, 9000, 0);
  onefold(DT_i64, INDEX_ADD, 1, &few, 0, 9000, 0);
  onefold(DT_i16, INDEX_MIN, 1, &few, 0, 9000, 0);
}

static void test_wrongindex(void **unused) {
  (void)unused;
  wrongly(FOLD, 3);
  wrongly(FOLD, 5000);
}

/*
** More than 2^31
*/
/* Units of all launches; each begins where the one before it ends. */
static int64_t units(IndexPlan *k, const char **end) {
  IndexPlan half;
  if (!nc_split_index(k, &half)) {
    const int64_t first = units(&half, end);
    return first + units(k, end);
  }
  assert_true(k->n <= NC_MAXUNITS);
  assert_ptr_equal(k->other, *end);
  *end = k->other + k->n * 8;
  return k->n;
}

static void test_halves(void **unused) {
  const int64_t most = (int64_t)5000000000;
  for (int picked = 0; picked < 2; picked++) {
    char *base = (char *)(uintptr_t)4096; /* nobody looks there */
    const char *end = base;
    IndexPlan k = { .x = base,
                    .other = base,
                    .nd = 2,
                    .picked = picked,
                    .size = { picked ? 1 : most, picked ? most : 1 },
                    .ostep = { 8, 8 },
                    .xstep = { 8, 8 } };
    assert_int_equal(units(&k, &end), most);
    assert_ptr_equal(end, base + most * 8);
  }
  (void)unused;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(shortlines), TEST(longlines),  TEST(batches), TEST(told),
    TEST(sortfails),  TEST(digits),     TEST(search),  TEST(accumulate),
    TEST(longruns),   TEST(wrongindex), TEST(halves),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
