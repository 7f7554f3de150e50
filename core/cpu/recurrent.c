/* SPDX-License-Identifier: MIT */
/*
** recurrent.c - the request recurrent on the CPU: threads take samples.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

/* Row i of t [.. x width]; NULL if there is no t. */
static void *row_of(const Tensor *t, int64_t i) {
  if (t == NULL) return NULL;
  return (char *)nc_data(t) + i * t->size[t->nd - 1] * nc_dtypesize(t->dtype);
}

static void sample_range(void *ctx, int64_t begin, int64_t end) {
  const RecurrentCall *c = ctx;
  const int f64 = c->states->dtype == DT_f64, lstm = c->kind == RECURRENT_LSTM;
  const RecurrentKernel run = nc_kernels()->recurrent[f64][c->kind][c->back];
  const int64_t n = c->states->size[1];
  for (int64_t i = begin; i < end; i++) {
    const int64_t prev = c->prev * n + i, next = c->next * n + i;
    const int64_t row = c->row + i;
    const RecurrentRow k = {
      .sum = row_of(c->sum, i),
      .input = row_of(c->input, row),
      .prev = row_of(c->states, prev),
      .next = row_of(c->states, next),
      .prev_cell = lstm ? row_of(c->cells, prev) : NULL,
      .cell = row_of(c->cells, lstm ? next : row),
      .gates = row_of(c->gates, row),
      .grad = row_of(c->grad, c->at * n + i),
      .dstate = row_of(c->dstate, i),
      .dcell = row_of(c->dcell, i),
      .dinput = row_of(c->dinput, row),
      .dsum = row_of(c->dsum, row),
    };
    run(&k, c->states->size[2]);
  }
}

int nc_cpu_recurrent(const RecurrentCall *c) {
  const int64_t units = c->states->size[2];
  return nc_parallel(c->rows, 1 + 2048 / (units ? units : 1), sample_range,
                     (void *)c);
}
