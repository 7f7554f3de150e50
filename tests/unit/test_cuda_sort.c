/* SPDX-License-Identifier: MIT */
/*
** test_cuda_sort.c - what a sort on a CUDA device does with less memory, with
** keys of few bits and when calls of CUDA fail; how an index is cut in parts.
** tests/parity/sizes.lua compares its results with the CPU's.
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
  Twin x = random_matrix(DT_f32, 3, 5000, 9);
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

RUN_TESTS(begin, end, TEST(batches), TEST(key_bits), TEST(failing_calls),
          TEST(split_index))
