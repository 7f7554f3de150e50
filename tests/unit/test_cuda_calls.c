/* SPDX-License-Identifier: MIT */
/*
** test_cuda_calls.c - how many calls of CUDA an operation makes: each takes a
** device's program a good part of a microsecond, so a small operation is one
** launch and nothing else.  What is asked once, at first, does not count.
*/
#include "tests/unit/cpu_vs_device.h"
#include "core/ops.h"

/* What all of them work on. */
static Twin a, b, y;
static float number;

static void add(void) {
  Tensor *sum;
  ok(nc_apply2(&sum, OP_add, a.gpu, b.gpu));
  nc_release(sum);
}

static void softmax(void) {
  const DimCall c = { .op = DIM_SOFTMAX,
                      .x = a.gpu,
                      .y = y.gpu,
                      .dims = 2,
                      .slices = 64,
                      .length = 64 };
  ok(d->dim_op(d, &c));
}

static void product(void) {
  const BmmCall p = { a.gpu, b.gpu, y.gpu, nc_int(1), nc_int(0) };
  ok(d->bmm(d, &p));
}

static void clone(void) {
  ok(d->copy(d, nc_data(y.gpu), nc_data(a.gpu), 64 * 64 * 4, d, 0));
}

/* A buffer that the device may still use is asked after. */
static void send(void) {
  ok(d->copy(d, nc_data(y.gpu), &number, 4, nc_host(), 0));
}

/* The copy, its mark, and at least one look at that. */
static void fetch(void) {
  ok(d->tohost(d, &number, nc_data(a.gpu), 4, 0));
}

static void test_calls(void **state) {
  static const struct {
    const char *name;
    void (*run)(void);
    int calls;
  } list[] = { { "add", add, 1 },
               { "softmax", softmax, 1 },
               { "product", product, 1 },
               { "copy on the device", clone, 1 },
               { "copy to the device", send, 3 },
               { "copy to the host", fetch, 4 } };
  for (int i = 0; i < COUNT(list); i++) {
    long long before;
    for (int k = 0; k < 40; k++) list[i].run();
    before = emu_count("calls");
    list[i].run();
    if (emu_count("calls") - before > list[i].calls)
      fail_msg("%s: %lld calls, not %d", list[i].name,
               emu_count("calls") - before, list[i].calls);
  }
}

static int prepare(void **state) {
  const int64_t size[2] = { 64, 64 };
  if (begin(state) != 0) return -1;
  a = random_matrix(DT_f32, 64, 64, 0);
  b = random_matrix(DT_f32, 64, 64, 0);
  y = new_twin(DT_f32, 2, size);
  return 0;
}

static int finish(void **state) {
  drop(a, b, y);
  return end(state);
}

RUN_TESTS(prepare, finish, cmocka_unit_test(test_calls))
