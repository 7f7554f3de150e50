/* SPDX-License-Identifier: MIT */
/* recurrent.cu - the request recurrent: a thread for each unit of a sample. */
#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/element.h"

#define THREADS 256

#define NAME(f) f
#define NC_STEP template <class S> NC_DEVICE
#include "core/recurrent_step.inc"

/* The rows of one step; see RecurrentCall. */
template <class S> struct StepRows {
  int64_t n, h; /* elements of a state; units */
  const S *sum, *input, *prev, *prev_cell, *grad;
  S *next, *cell, *gates, *dstate, *dcell, *dinput, *dsum;
};

template <class S> NC_KERNEL_OF(THREADS) lstm_forward(const StepRows<S> k) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, h = k.h;
  if (i >= k.n) return;
  const int64_t at = i / h * 4 * h + i % h;
  const S *x = k.sum + at;
  S *a = k.gates + at;
  a[0] = x[0], a[h] = x[h], a[2 * h] = x[2 * h], a[3 * h] = x[3 * h];
  lstm_step(a, a + h, a + 2 * h, a + 3 * h, k.prev_cell[i], k.cell + i,
            k.next + i);
}

template <class S> NC_KERNEL_OF(THREADS) lstm_backward(const StepRows<S> k) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, h = k.h;
  if (i >= k.n) return;
  const int64_t at = i / h * 4 * h + i % h;
  const S *a = k.gates + at;
  S d[4];
  lstm_step_back(a[0], a[h], a[2 * h], a[3 * h], k.prev_cell[i], k.cell[i],
                 k.grad[i] + k.dstate[i], k.dcell + i, d);
  NC_UNROLL for (int g = 0; g < 4; g++) k.dinput[at + g * h] = d[g];
}

template <class S> NC_KERNEL_OF(THREADS) gru_forward(const StepRows<S> k) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, h = k.h;
  if (i >= k.n) return;
  const int64_t at = i / h * 3 * h + i % h;
  S x[3], s[3], *a = k.gates + at;
  NC_UNROLL for (int g = 0; g < 3; g++) {
    x[g] = k.input[at + g * h];
    s[g] = k.sum[at + g * h];
  }
  gru_step(x, s, k.prev[i], a, a + h, a + 2 * h, k.next + i);
  k.cell[i] = s[2];
}

template <class S> NC_KERNEL_OF(THREADS) gru_backward(const StepRows<S> k) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, h = k.h;
  if (i >= k.n) return;
  const int64_t at = i / h * 3 * h + i % h;
  const S *a = k.gates + at;
  S d[3], all = k.grad[i] + k.dstate[i];
  gru_step_back(a[0], a[h], a[2 * h], k.cell[i], k.prev[i], &all, d);
  k.dstate[i] = all;
  NC_UNROLL for (int g = 0; g < 3; g++) {
    k.dinput[at + g * h] = d[g];
    k.dsum[at + g * h] = g == 2 ? d[2] * a[0] : d[g];
  }
}

/* The rows of t [.. x width] from `row' on; NULL if there is no t. */
template <class S>
static S *rows_of(const Device *d, const Tensor *t, int64_t row) {
  if (t == NULL) return NULL;
  return (S *)nc_used(d, t) + row * t->size[t->nd - 1];
}

template <class S> static int run(const Device *d, const RecurrentCall *c) {
  const bool lstm = c->kind == RECURRENT_LSTM;
  StepRows<S> k = {};
  const int64_t n = c->states->size[1];
  k.h = c->states->size[2];
  k.n = c->rows * k.h;
  k.sum = rows_of<S>(d, c->sum, 0);
  k.input = rows_of<S>(d, c->input, c->row);
  k.prev = rows_of<S>(d, c->states, c->prev * n);
  k.next = rows_of<S>(d, c->states, c->next * n);
  k.prev_cell = lstm ? rows_of<S>(d, c->cells, c->prev * n) : NULL;
  k.cell = rows_of<S>(d, c->cells, lstm ? c->next * n : c->row);
  k.gates = rows_of<S>(d, c->gates, c->row);
  k.grad = rows_of<S>(d, c->grad, c->at * n);
  k.dstate = rows_of<S>(d, c->dstate, 0);
  k.dcell = rows_of<S>(d, c->dcell, 0);
  k.dinput = rows_of<S>(d, c->dinput, c->row);
  k.dsum = rows_of<S>(d, c->dsum, c->row);
  CUDA_TRY(NC_LAUNCH(lstm ? (c->back ? lstm_backward<S> : lstm_forward<S>)
                          : (c->back ? gru_backward<S> : gru_forward<S>),
                     blocks(k.n, THREADS), THREADS, 0, nc_current_stream(d),
                     k));
  return nc_check_launch(d, "recurrent");
}

int nc_cuda_recurrent(const Device *d, const RecurrentCall *c) {
  return c->states->dtype == DT_f64 ? run<double>(d, c) : run<float>(d, c);
}
