/* SPDX-License-Identifier: MIT */
/*
** test_cuda_sort.c - sorting, searching and index_accumulate on a CUDA device,
** against the CPU's own functions, bit for bit.
*/
#include "tests/unit/cpu_vs_device.h"
#include "cuda/indexing/advanced_index.h"
#include "cuda/sort/sort.h"

/* The same bytes. */
static void assert_equal(Twin t) {
  const int64_t bytes = nc_numel(t.cpu) * nc_dtypesize(t.cpu->dtype);
  void *back = malloc((size_t)bytes);
  assert_non_null(back);
  ok(d->tohost(d, back, nc_data(t.gpu), bytes, 0));
  if (memcmp(back, nc_data(t.cpu), (size_t)bytes) != 0) assert_close(t, 0, 0);
  assert_memory_equal(back, nc_data(t.cpu), (size_t)bytes);
  free(back);
}

/* Sets what s reads and writes on a device. */
static int sort_on(int i, SortCall s, Twin x, Twin y, Twin at) {
  s.x = half(x, i);
  s.y = half(y, i);
  s.at = half(at, i);
  return device(i)->sort(device(i), &s);
}

/*
** Sorting
*/
static void check_sort(Twin x, int dim, int descending, int64_t from,
                       int64_t keep, int with_values) {
  const SortCall s = {
    .dim = dim, .descending = descending, .from = from, .keep = keep
  };
  int64_t size[NC_MAXDIM];
  Twin y = { NULL, NULL }, at;
  memcpy(size, x.cpu->size, sizeof size);
  if (x.cpu->nd > 0) size[dim] = keep;
  if (with_values) y = new_twin(x.cpu->dtype, x.cpu->nd, size);
  at = new_twin(DT_i64, x.cpu->nd, size);
  for (int i = 0; i < 2; i++) ok(sort_on(i, s, x, y, at));
  assert_equal(at);
  if (with_values) assert_equal(y);
  drop(at, y);
}

/* Any ranks: all, the first ones, one, or some in between. */
static void check_ranks(Twin x, int dim) {
  const int64_t n = x.cpu->nd ? x.cpu->size[dim] : 1;
  const int down = (int)below(2), with_values = (int)below(2);
  const int64_t from = below(n);
  check_sort(x, dim, down, 0, n, with_values);
  check_sort(x, dim, !down, 0, 1 + below(n), 1);
  check_sort(x, dim, down, from, 1, with_values);
  check_sort(x, dim, !down, from, 1 + below(n - from), 1);
}

static void test_short_slices(void **state) {
  for (int i = 0; i < 150; i++) {
    const int nd = (int)below(5), dim = nd ? (int)below(nd) : 0;
    int64_t size[NC_MAXDIM];
    Twin x;
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 20 : 4);
    if (nd && below(4) == 0) size[dim] = 1 + below(600);
    x = random_tensor(ANYOF(dtypes), nd, size, below(2) ? 0 : 10);
    check_ranks(x, dim);
    drop(x);
  }
}

/* Lengths at which another way begins, of every type. */
static void test_long_slices(void **state) {
  static const int64_t length[] = { 2048, 2049, 4096, 4097, 9001 };
  for (int t = 0; t < COUNT(dtypes); t++)
    for (int i = 0; i < COUNT(length); i++) {
      const int64_t size[2] = { 1 + below(2), length[i] };
      const int64_t tall[2] = { length[i], 2 };
      Twin x =
          random_tensor(dtypes[t], 2, below(2) ? size : tall, i % 2 ? 0 : 50);
      check_ranks(x, x.cpu->size[0] < 3);
      drop(x);
    }
}

/* Dense slices of n elements: as many at a time as there is room for in `most'
   elements, or one by one if they have `alone'. */
static void check_batch(DType type, int64_t slices, int64_t n, int64_t alone,
                        int64_t most) {
  const int64_t from = below(2) ? 0 : below(n), keep = 1 + below(n - from);
  const int64_t part[2] = { slices, keep };
  const int down = (int)below(2), with_values = (int)below(4) > 0;
  Twin x = random_matrix(type, slices, n, below(2) ? 0 : 20);
  Twin y = new_twin(type, 2, part), at = new_twin(DT_i64, 2, part);
  const SortCall s = {
    .dim = 1, .descending = down, .from = from, .keep = keep
  };
  SortPlan k = { .order = nc_sort_order(type, down),
                 .slices = slices,
                 .bits = (int)nc_dtypesize(type) * 8,
                 .x = nc_data(x.gpu),
                 .n = (uint32_t)n,
                 .first = (uint32_t)from,
                 .keep = (uint32_t)keep,
                 .at = nc_data(at.gpu),
                 .y = with_values ? nc_data(y.gpu) : NULL };
  ok(sort_on(0, s, x, y, at));
  ok(nc_sort_long(d, &k, alone, most));
  assert_equal(at);
  if (with_values) assert_equal(y);
  drop(x, y, at);
}

static void test_batches(void **state) {
  static const int64_t cases[][4] = {
    /* slices, n, alone, most */
    { 7, 300, 1 << 20, 1 << 20 },  /* together */
    { 7, 300, 1 << 20, 1024 },     /* two at a time, then one */
    { 5, 300, 300, 1 << 20 },      /* one by one */
    { 3, 256, 1 << 20, 1 },        /* though there is no room */
    { 300, 33, 1 << 20, 1 << 20 }, /* the number of a slice: 9 bits */
    { 1, 5000, 1 << 20, 1 << 20 }, { 2, 4096, 1 << 20, 1 << 20 },
    { 6, 1, 1 << 20, 4 }, /* no bits within a slice */
  };
  for (int t = 0; t < COUNT(dtypes); t++)
    for (int i = 0; i < COUNT(cases); i++)
      check_batch(dtypes[t], cases[i][0], cases[i][1], cases[i][2],
                  cases[i][3]);
}

/* What needs more bits than keys are said to have comes last, in order. */
static void test_key_bits(void **state) {
  const int64_t n = 400;
  Twin x = random_vector(DT_i64, n, 0), y = new_twin(DT_i64, 1, &n);
  Twin at = new_twin(DT_i64, 1, &n);
  int64_t *p = nc_data(x.cpu), back[400], places[400], few = 0;
  for (int64_t i = 0; i < n; i++) p[i] = below(3) ? below(31) : -1 - i;
  for (int64_t i = 0; i < n; i++) few += p[i] >= 0;
  upload(&x);
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
  drop(x, y, at);
}

/* Each call of CUDA fails in turn, that for memory too: the sort says so and
   leaves nothing behind. */
static void test_failing_calls(void **state) {
  const int64_t size[2] = { 3, 5000 };
  const SortCall s = { .dim = 1, .keep = 5000 };
  Twin x = random_tensor(DT_f32, 2, size, 9);
  Twin y = new_twin(DT_f32, 2, size), at = new_twin(DT_i64, 2, size);
  int r = NC_ENOMEM, failed = 0;
  ok(sort_on(0, s, x, y, at));
  for (int i = 1; r != NC_OK; i++) {
    char setting[32];
    const int64_t live = d->memory->live;
    d->trim(d, 0);
    snprintf(setting, sizeof setting, "failat=%d", i);
    emu_set(setting);
    r = sort_on(1, s, x, y, at);
    emu_set("failat=0");
    if (r != NC_OK) assert_int_equal(r, NC_ENOMEM);
    failed += r != NC_OK;
    assert_int_equal(d->memory->live, live);
  }
  assert_true(failed >= 6); /* two queries, two kernels, two sorts */
  assert_equal(at);
  assert_equal(y);
  drop(x, y, at);
}

/* Many spans; keys that differ in some of their digits only, or nowhere. */
static void test_digits(void **state) {
  const int64_t n = 30000;
  for (int shift = 0; shift < 64; shift += 9) {
    Twin x = random_vector(DT_i64, n, 0);
    int64_t *p = nc_data(x.cpu);
    for (int64_t i = 0; i < n; i++) p[i] = below(200) << shift;
    upload(&x);
    check_sort(x, 0, shift & 1, 0, n, 1);
    check_sort(x, 0, shift & 1, 0, 3000, 1);
    check_sort(x, 0, 0, n / 2, 1, 1);
    drop(x);
  }
  for (int k = 0; k < 2; k++) {
    Twin x = random_vector(k ? DT_f64 : DT_i32, n, 0);
    memset(nc_data(x.cpu), 0, (size_t)(n * nc_dtypesize(x.cpu->dtype)));
    upload(&x);
    check_sort(x, 0, k, 0, n, 1);
    check_sort(x, 0, k, 0, 100, 1);
    drop(x);
  }
}

/*
** Searching
*/
/* Sequences of n elements, one for each row of values, or one for all (0). */
static void check_search(DType type, int rows, int64_t n, int64_t m,
                         int right) {
  const SortCall sort = { .dim = rows > 0, .keep = n };
  const int64_t values[2] = { rows ? rows : 1, m };
  Twin x = random_matrix(type, values[0], m, 9);
  Twin raw = rows ? random_matrix(type, rows, n, 9) : random_vector(type, n, 9);
  Twin seq = new_twin(type, raw.cpu->nd, raw.cpu->size);
  Twin order = new_twin(DT_i64, raw.cpu->nd, raw.cpu->size);
  Twin at = new_twin(DT_i64, 2, values);
  ok(sort_on(0, sort, raw, seq, order));
  upload(&seq);
  for (int i = 0; i < 2; i++) {
    const SearchCall q = {
      .at = half(at, i), .seq = half(seq, i), .x = half(x, i), .right = right
    };
    ok(device(i)->search(device(i), &q));
  }
  assert_equal(at);
  drop(x, raw, seq, order, at);
}

static void test_search(void **state) {
  static const DType types[] = { DT_i64, DT_f32, DT_f64 };
  for (int i = 0; i < 60; i++)
    check_search(types[i % 3], (int)below(4), 1 + below(300), 1 + below(500),
                 (int)below(2));
}

/*
** index_accumulate
*/
/* Reduces n slices of other into those of x along dim, many into one. */
static void check_accumulate(DType type, IndexReduce fold, int nd,
                             const int64_t size[], int dim, int64_t n,
                             int distinct) {
  const IndexCall g = {
    .indexed_dims = 1u << dim, .at = dim, .distinct = distinct, .fold = fold
  };
  int64_t step[NC_MAXDIM], other_size[NC_MAXDIM], all = 1;
  for (int i = nd - 1; i >= 0; all *= size[i--]) step[i] = all;
  memcpy(other_size, size, (size_t)nd * sizeof *size);
  other_size[dim] = n;
  Twin x = random_vector(type, all, 60), index = random_indices(n, size[dim]);
  Twin other = random_tensor(type, nd, other_size, 60);
  set_shape(x, nd, size, step, 0);
  for (int64_t i = 0; distinct && i < n; i++)
    set_element(index.cpu, i, (double)(n - i));
  upload(&index);
  Twin offset = resolve(index, x, dim);
  index_both(ACCUMULATE, g, x, other, offset);
  assert_close(x, 0, 0);
  drop(x, other, index, offset);
}

static void test_accumulate(void **state) {
  for (int i = 0; i < 250; i++) {
    const int nd = 1 + (int)below(4), dim = (int)below(nd);
    const int distinct = below(4) == 0;
    int64_t size[NC_MAXDIM];
    for (int k = 0; k < nd; k++) size[k] = 1 + below(below(2) ? 12 : 3);
    check_accumulate(ANYOF(dtypes), (IndexReduce)below(INDEX_MIN + 1), nd, size,
                     dim, 1 + below(distinct ? size[dim] : 60), distinct);
  }
}

/* So many that their offsets are sorted by digits; long runs. */
static void test_long_accumulate(void **state) {
  const int64_t few = 3, many = 4000;
  check_accumulate(DT_f32, INDEX_ADD, 1, &few, 0, 9000, 0);
  check_accumulate(DT_f16, INDEX_ADD, 1, &many, 0, 9000, 0);
  check_accumulate(DT_i64, INDEX_ADD, 1, &few, 0, 9000, 0);
  check_accumulate(DT_i16, INDEX_MIN, 1, &few, 0, 9000, 0);
}

static void test_bad_indices(void **state) {
  check_bad_indices(ACCUMULATE, 3);
  check_bad_indices(ACCUMULATE, 5000);
}

/*
** More than 2^31
*/
/* Units of all launches; each begins where the one before it ends. */
static int64_t count_units(IndexPlan *k, const char **end) {
  IndexPlan first;
  if (!nc_split_index(k, &first)) {
    const int64_t n = count_units(&first, end);
    return n + count_units(k, end);
  }
  assert_true(k->n <= NC_MAXUNITS);
  assert_ptr_equal(k->other, *end);
  *end = k->other + k->n * 8;
  return k->n;
}

static void test_split_index(void **state) {
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
    assert_int_equal(count_units(&k, &end), most);
    assert_ptr_equal(end, base + most * 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(short_slices), TEST(long_slices),   TEST(batches),
    TEST(key_bits),     TEST(failing_calls), TEST(digits),
    TEST(search),       TEST(accumulate),    TEST(long_accumulate),
    TEST(bad_indices),  TEST(split_index),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
