/* SPDX-License-Identifier: MIT */
/*
** class_loss.cu - the request class_loss: a block for each row, then one block
** that adds up the losses.  A class that is not there sets the error flag.
*/
#include "cuda/block_sums.h"
#include "cuda/blocks.h"
#include "cuda/dim/sum_exp.h"
#include "cuda/runtime/error_flag.h"

#define THREADS 256 /* of a block that reduces */
#define SHORT 128   /* classes for which a warp is enough */

template <class T> struct ClassRow {
  const T *x, *weight, *g;
  const int64_t *target;
  int64_t rows, classes, ignore;
  T *loss, *share, *lse, *d; /* share: the weight of each row */
  const T *scale;
  T smoothing, spread; /* spread: smoothing by classes */
  int log, gstep;
  ErrorFlag *flag;
};

/* What a row is reduced to: the sum of exp(x), and those of w*x and w. */
template <class T> struct Scores {
  SumExp<T> e;
  T scores, weights;

  NC_MEMBER void merge(const Scores &q) {
    e.merge(q.e);
    scores += q.scores;
    weights += q.weights;
  }

  NC_MEMBER Scores shuffle_down(int by, int width) const {
    Scores q;
    q.e = e.shuffle_down(by, width);
    q.scores = __shfl_down_sync(~0u, scores, by, width);
    q.weights = __shfl_down_sync(~0u, weights, by, width);
    return q;
  }
};

/* The sums over row x, for the first thread of the block. */
template <class T>
NC_DEVICE Scores<T> sum_row(const ClassRow<T> &k, const T *x) {
  Scores<T> s;
  s.e.start();
  s.scores = s.weights = 0;
  for (int64_t j = threadIdx.x; j < k.classes; j += blockDim.x) {
    const T v = x[j], w = k.weight && k.smoothing > 0 ? k.weight[j] : (T)1;
    if (!k.log) s.e.add(&v, 1);
    if (w != 0) s.scores += w * v; /* what has no weight may be infinite */
    s.weights += w;
  }
  merge_row(&s);
  return s;
}

/* Whether row i counts; *t = its class, from 0.  An invalid one sets the flag
   and does not count. */
template <class T>
NC_DEVICE bool class_of(const ClassRow<T> &k, int64_t i, int64_t *t) {
  *t = k.target[i] - 1;
  if (k.target[i] == k.ignore) return false;
  if (*t >= 0 && *t < k.classes) return true;
  if (threadIdx.x == 0 && k.d == NULL)
    flag_class(k.flag, k.target[i], k.classes);
  return false;
}

/* Grid: a block for each row. */
template <class T> NC_KERNEL_OF(THREADS) class_loss(const ClassRow<T> k) {
  const int64_t i = blockIdx.x;
  const T *x = k.x + i * k.classes;
  const Scores<T> s = sum_row(k, x);
  int64_t t;
  const bool counts = class_of(k, i, &t);
  if (threadIdx.x > 0) return;
  const T lse = k.log ? (T)0 : s.e.max + log(s.e.sum);
  const T share = !counts ? (T)0 : k.weight ? k.weight[t] : (T)1;
  T loss = 0;
  const T part = (1 - k.smoothing) * share;
  if (part != 0) loss = part * (lse - x[t]);
  if (counts && k.smoothing > 0)
    loss += k.spread * (lse * s.weights - s.scores);
  k.lse[i] = lse;
  k.loss[i] = loss;
  k.share[i] = share;
}

/* One block: loss[0] = the sum of the losses, by the sum of the weights if
   `mean'; scale = its factor. */
template <class T>
NC_KERNEL_OF(THREADS)
add_losses(T *loss, T *scale, const T *row, const T *share, int64_t n,
           int mean) {
  NC_SHARED(T, part, THREADS);
  T sum = 0, all = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) {
    sum += row[i];
    all += share[i];
  }
  sum = block_tree_sum(sum, part, THREADS);
  __syncthreads();
  all = mean ? block_tree_sum(all, part, THREADS) : (T)1;
  if (threadIdx.x > 0) return;
  *loss = sum / all;
  *scale = 1 / all;
}

/* Grid: a block for each row. */
template <class T> NC_KERNEL_OF(THREADS) class_loss_grad(const ClassRow<T> k) {
  const int64_t i = blockIdx.x;
  const T *x = k.x + i * k.classes;
  T *d = k.d + i * k.classes;
  int64_t t;
  const bool counts = class_of(k, i, &t);
  NC_SHARED(T, part, 32);
  T weights = (T)k.classes;
  if (k.weight && k.smoothing > 0) {
    weights = 0;
    for (int64_t j = threadIdx.x; j < k.classes; j += blockDim.x)
      weights += k.weight[j];
    weights = block_sum(weights, part);
  }
  const T scale = counts ? k.g[i * k.gstep] * *k.scale : (T)0;
  const T one =
      counts ? (k.weight ? k.weight[t] : (T)1) * (1 - k.smoothing) : (T)0;
  const T all = one + k.spread * weights;
  for (int64_t j = threadIdx.x; j < k.classes; j += blockDim.x) {
    T v = 0 - scale * k.spread * (k.weight ? k.weight[j] : (T)1);
    if (!k.log && all != 0) v += scale * all * exp(x[j] - k.lse[i]);
    if (j == t) v -= scale * one;
    d[j] = counts ? v : (T)0;
  }
}

template <class T>
static int forward(const Device *d, const ClassLossCall *c, ClassRow<T> *k,
                   unsigned threads) {
  const cudaStream_t s = nc_current_stream(d);
  void *rows = NULL;
  int r;
  TRY(nc_scratch(d, &rows, (2 * k->rows + 1) * (int64_t)sizeof(T)));
  k->loss = c->reduction == CLASS_NONE ? (T *)nc_used(d, c->loss) : (T *)rows;
  k->share = (T *)rows + k->rows;
  k->lse = (T *)nc_used(d, c->lse);
  r = k->rows == 0 ? NC_OK
                   : nc_cudastatus(NC_LAUNCH(class_loss<T>, (unsigned)k->rows,
                                             threads, 0, s, *k));
  if (r == NC_OK)
    r = nc_cudastatus(NC_LAUNCH(add_losses<T>, 1, THREADS, 0, s,
                                c->reduction == CLASS_NONE
                                    ? (T *)rows + 2 * k->rows
                                    : (T *)nc_used(d, c->loss),
                                (T *)nc_used(d, c->scale), k->loss, k->share,
                                k->rows, c->reduction == CLASS_MEAN));
  nc_scratchfree(d, rows);
  return r;
}

template <class T> static int run(const Device *d, const ClassLossCall *c) {
  ClassRow<T> k = {};
  k.rows = c->x->size[0];
  k.classes = c->x->size[1];
  k.ignore = c->ignore;
  k.smoothing = (T)c->smoothing;
  k.spread = k.smoothing / (T)k.classes;
  k.log = c->log;
  k.x = (const T *)nc_used(d, c->x);
  k.weight = (const T *)nc_used(d, c->weight);
  k.target = (const int64_t *)nc_used(d, c->target);
  k.flag = nc_error_flag(d);
  const unsigned threads = k.classes <= SHORT ? 32 : THREADS;
  if (c->d == NULL) {
    TRY(forward(d, c, &k, threads));
    return nc_check_launch(d, "class_loss");
  }
  if (k.rows == 0 || k.classes == 0) return NC_OK;
  k.d = (T *)nc_used(d, c->d);
  k.g = (const T *)nc_used(d, c->g);
  k.gstep = c->reduction == CLASS_NONE;
  k.lse = (T *)nc_used(d, c->lse);
  k.scale = (const T *)nc_used(d, c->scale);
  CUDA_TRY(NC_LAUNCH(class_loss_grad<T>, (unsigned)k.rows, threads, 0,
                     nc_current_stream(d), k));
  return nc_check_launch(d, "class_loss");
}

int nc_cuda_class_loss(const Device *d, const ClassLossCall *c) {
  return c->x->dtype == DT_f64 ? run<double>(d, c) : run<float>(d, c);
}
