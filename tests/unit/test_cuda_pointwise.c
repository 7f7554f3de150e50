/* SPDX-License-Identifier: MIT */
/*
** test_cuda_pointwise.c - how a CUDA device cuts large loops, and which kernels
** it takes. tests/ops and tests/parity look at what pointwise operations give.
*/
/* First: the fixture's `d' is a name of theirs, too. */
#include "cuda/pointwise/launch.h"
#include "cuda/pointwise/pointwise.h"
#include "core/ops.h"

#include "tests/unit/cuda_fixture.h"

/* Many small matrices are not transposed by tiles, which are large. */
static void test_small_matrices(void **state) {
  enum { SIDE = 8, MANY = 200, ALL = MANY * SIDE * SIDE };
  TensorIter k = { .op = OP_clone,
                   .common_dtype = DT_f32,
                   .nargs = 2,
                   .nd = 3,
                   .n = ALL,
                   .size = { SIDE, SIDE, MANY },
                   .type = { DT_f32, DT_f32 },
                   .step = { { 1, SIDE, SIDE * SIDE },
                             { SIDE, 1, SIDE * SIDE } } };
  const int64_t n = ALL;
  Tensor *t[2];
  for (int j = 0; j < 2; j++) {
    ok(nc_full(&t[j], d, DT_f32, 1, &n, nc_int(0)));
    k.p[j] = nc_data(t[j]);
  }
  const long long before = emu_count("threads");
  ok(d->run(d, &k));
  ok(d->synchronize(d));
  assert_true(emu_count("threads") - before <= ALL / 2);
  release(t[0], t[1]);
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
  TensorIter k = { .op = OP_clone,
                   .common_dtype = DT_f32,
                   .nargs = 2,
                   .type = { DT_f32, DT_f32 } };
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
  const TensorIter k = { .op = OP_exp,
                         .common_dtype = DT_i32,
                         .nargs = 2,
                         .n = 1,
                         .type = { DT_i32, DT_i32 } };
  fails(d->run(d, &k), NC_EDTYPE, "no CUDA kernel of it for int32");
}

RUN_TESTS(begin, end, cmocka_unit_test(test_divisors),
          cmocka_unit_test(test_chunks), cmocka_unit_test(test_small_matrices),
          cmocka_unit_test(test_refused))
