/* SPDX-License-Identifier: MIT */
/*
** recurrent.c - the request recurrent on the CPU: threads take samples.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

/* Row i of step `at' of t [.. x n x width]; NULL if there is no t. */
static void *row_of(const Tensor *t, int64_t at, int64_t i) {
  const int64_t width = t ? t->size[t->nd - 1] : 0;
  if (t == NULL) return NULL;
  return (char *)nc_data(t) +
         (at * t->size[t->nd - 2] + i) * width * nc_dtypesize(t->dtype);
}

static void sample_range(void *ctx, int64_t begin, int64_t end) {
  const RecurrentCall *c = ctx;
  const int f64 = c->states->dtype == DT_f64, lstm = c->kind == RECURRENT_LSTM;
  const RecurrentKernel run = nc_kernels()->recurrent[f64][c->kind][c->back];
  for (int64_t i = begin; i < end; i++) {
    const RecurrentRow k = {
      .sum = row_of(c->sum, 0, i),
      .input = row_of(c->input, c->at, i),
      .prev = row_of(c->states, c->prev, i),
      .next = row_of(c->states, c->next, i),
      .prev_cell = lstm ? row_of(c->cells, c->prev, i) : NULL,
      .cell = row_of(c->cells, lstm ? c->next : c->at, i),
      .gates = row_of(c->gates, c->at, i),
      .grad = row_of(c->grad, c->at, i),
      .dstate = row_of(c->dstate, 0, i),
      .dcell = row_of(c->dcell, 0, i),
      .dinput = row_of(c->dinput, c->at, i),
      .dsum = row_of(c->dsum, c->at, i),
    };
    run(&k, c->states->size[2]);
  }
}

int nc_cpu_recurrent(const RecurrentCall *c) {
  const int64_t units = c->states->size[2];
  return nc_parallel(c->states->size[1], 1 + 2048 / (units ? units : 1),
                     sample_range, (void *)c);
}
