/* SPDX-License-Identifier: MIT */
/*
** test_attention.c - attention by small blocks of scores gives what one block
** does, results and gradients.  tests/ops/attention.lua, on a device, compares
** one block with the CPU's own attention.
*/
#include <math.h>

#include "core/ops/attention.h"
#include "tests/unit/unit.h"

enum { N = 600, M = 500, E = 7, V = 5 };

static Tensor *draw(Temps *w, int nd, const int64_t size[]) {
  static uint64_t seed = 1;
  Tensor *t = NULL;
  double *p;
  nc_temps_add(w, nc_new(&t, &nc_cpu, DT_f64, nd, size), &t);
  assert_int_equal(w->status, NC_OK);
  p = nc_data(t);
  for (int64_t i = 0; i < nc_numel(t); i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    p[i] = (double)(seed >> 40) / (1 << 23) - 1;
  }
  return t;
}

typedef struct Outcome {
  Tensor *y, *to[3];
} Outcome;

static Outcome compute(Temps *w, const Operands *o, Tensor *g, int64_t bytes) {
  const int need[3] = { 1, 1, 1 };
  Outcome r = { NULL, { NULL, NULL, NULL } };
  nc_attention_block_bytes = bytes;
  r.y = nc_attention_blocks(w, o);
  if (w->status == NC_OK) nc_attention_blocks_grad(w, o, r.y, g, need, r.to);
  assert_int_equal(w->status, NC_OK);
  return r;
}

static void same(const Tensor *a, const Tensor *b) {
  const double *x = nc_data(a), *y = nc_data(b);
  for (int64_t i = 0; i < nc_numel(a); i++)
    assert_true(fabs(x[i] - y[i]) <= 1e-12);
}

/* Masks: [N x M] for all, or of each first index alone. */
static void compare(int causal, const int64_t *mask) {
  Temps w = { 0 };
  const int64_t q[4] = { 2, 3, N, E }, k[4] = { 2, 3, M, E };
  const int64_t v[4] = { 2, 3, M, V }, y[4] = { 2, 3, N, V };
  const int64_t full[4] = { 2, 3, N, M };
  Operands o = { .t = { draw(&w, 4, q), draw(&w, 4, k), draw(&w, 4, v) },
                 .causal = causal,
                 .scale = 0.3 };
  Tensor *g = draw(&w, 4, y);
  Outcome one, many;
  if (mask) o.t[MASK] = nc_temps_expand(&w, draw(&w, 4, mask), 4, full);
  one = compute(&w, &o, g, (int64_t)1 << 40);
  many = compute(&w, &o, g, 2 * 256 * M * 8); /* two matrices, 256 rows */
  same(one.y, many.y);
  for (int i = 0; i < 3; i++) same(one.to[i], many.to[i]);
  nc_temps_finish(&w);
}

static void test_blocks(void **state) {
  compare(0, NULL);
  compare(1, NULL);
}

static void test_masks(void **state) {
  const int64_t all[4] = { 1, 1, N, M }, row[4] = { 2, 1, 1, M };
  compare(0, all);
  compare(0, row);
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_blocks),
          cmocka_unit_test(test_masks))
