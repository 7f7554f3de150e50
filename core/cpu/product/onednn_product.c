/* SPDX-License-Identifier: MIT */
/*
** onednn_product.c - products of halves by oneDNN, where it is installed and
** the processor multiplies such numbers: operands are read as they are, not
** converted to float32.
*/
#include <stdatomic.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/cpu/product/onednn.h"

#define FEWEST 32768 /* multiplications in a matrix; fewer do not pay */
#define ROWS 256     /* of the result, in a task; oneDNN wants whole rows */

typedef struct DnnProduct {
  const BmmCall *c;
  int64_t m, n, k;
  int64_t parts;      /* of the rows of a matrix */
  DnnPrimitive of[2]; /* of ROWS rows, if there are such, and of the last */
  _Atomic int failed;
} DnnProduct;

/* The first element of matrix i of a tensor's batch. */
static char *matrix_of(const Tensor *t, int64_t i) {
  int64_t offset = 0;
  for (int d = t->nd - 3; d >= 0; i /= t->size[d--])
    offset += i % t->size[d] * t->step[d];
  return (char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
}

static void run_part(void *ctx, int64_t task, char *buffer) {
  DnnProduct *v = ctx;
  const BmmCall *c = v->c;
  const int64_t size = nc_dtypesize(c->a->dtype);
  const int64_t part = task % v->parts, batch = task / v->parts;
  char *const data[3] = { matrix_of(c->a, batch) +
                              part * ROWS * c->a->step[c->a->nd - 2] * size,
                          matrix_of(c->b, batch),
                          matrix_of(c->y, batch) + part * ROWS * v->n * size };
  if (!nc_dnn_run(&v->of[part == v->parts - 1], data, 0, buffer))
    atomic_store(&v->failed, 1);
}

static void set_shape(DnnShape *s, int i, int64_t rows, int64_t columns,
                      const int64_t step[2]) {
  s->size[i][0] = rows;
  s->size[i][1] = columns;
  memcpy(s->step[i], step, 2 * sizeof *step);
}

static int make_primitive(DnnProduct *v, int i, int64_t rows) {
  const BmmCall *c = v->c;
  DnnShape s = { .nd = 2, .type = c->a->dtype };
  set_shape(&s, DNN_SOURCE, rows, v->k, c->a->step + c->a->nd - 2);
  set_shape(&s, DNN_WEIGHT, v->k, v->n, c->b->step + c->b->nd - 2);
  set_shape(&s, DNN_RESULT, rows, v->n, c->y->step + c->y->nd - 2);
  return nc_dnn_make_product(&v->of[i], &s);
}

static int make_primitives(DnnProduct *v) {
  return make_primitive(v, 1, v->m - (v->parts - 1) * ROWS) &&
         (v->parts == 1 || make_primitive(v, 0, ROWS));
}

static int run_parts(DnnProduct *v) {
  int64_t batch = 1;
  int r;
  for (int d = 0; d < v->c->y->nd - 2; d++) batch *= v->c->y->size[d];
  atomic_init(&v->failed, 0);
  const int64_t first = nc_dnn_buffer(&v->of[0]);
  const int64_t last = nc_dnn_buffer(&v->of[1]);
  r = nc_cpu_tasks(batch * v->parts, first > last ? first : last, run_part, v);
  if (r == NC_OK && atomic_load(&v->failed))
    r = nc_fail(NC_ENOMEM, "oneDNN failed in a product");
  return r;
}

/* Does oneDNN have kernels for the dtype on this processor?  Asked once.  Ours
   in pair_gemm.c come first, because its kernels are no faster. */
static int multiplies(DType type) {
  static _Atomic int known[2]; /* of float16 and bfloat16: 0, no 1, yes 2 */
  _Atomic int *answer = &known[type == DT_bf16];
  if (type == DT_bf16 && nc_multiplies_pairs()) return 0;
  if (atomic_load(answer) == 0) {
    const int64_t step[] = { 64, 1 };
    DnnShape s = { .nd = 2, .type = type };
    DnnPrimitive p;
    for (int i = 0; i < 3; i++) set_shape(&s, i, 64, 64, step);
    const int can = nc_dnn_make_product(&p, &s);
    if (can) nc_dnn_free(&p);
    atomic_store(answer, 1 + can);
  }
  return atomic_load(answer) == 2;
}

/* Halves, large enough, in dense rows or columns. */
static int is_supported(const DnnProduct *v) {
  const BmmCall *c = v->c;
  const Tensor *const operand[] = { c->a, c->b };
  for (int i = 0; i < 2; i++) {
    const int64_t *step = operand[i]->step + operand[i]->nd - 2;
    if (step[0] <= 0 || step[1] <= 0 || (step[0] != 1 && step[1] != 1))
      return 0;
  }
  return (c->a->dtype == DT_f16 || c->a->dtype == DT_bf16) && v->k > 0 &&
         (double)v->m * (double)v->n * (double)v->k >= FEWEST &&
         nc_tofloat(c->alpha) == 1 && nc_tofloat(c->beta) == 0;
}

int nc_product_onednn(const BmmCall *c, int *done) {
  DnnProduct v = { .c = c };
  int r = NC_OK;
  v.m = c->a->size[c->a->nd - 2];
  v.k = c->a->size[c->a->nd - 1];
  v.n = c->b->size[c->b->nd - 1];
  v.parts = nc_ceil_div(v.m, ROWS);
  *done = 0;
  if (!is_supported(&v)) return NC_OK;
  TRY(nc_onednn(done));
  *done = *done && multiplies(c->a->dtype) && make_primitives(&v);
  if (*done) r = run_parts(&v);
  for (int i = 0; i < 2; i++) nc_dnn_free(&v.of[i]);
  return r;
}
