/* SPDX-License-Identifier: MIT */
/*
** optimizer_step.cu - the request optimizer_step: one launch for each MOST
** parameters, whose addresses are arguments of the kernel.
*/
#include "core/optimizer_step.h"
#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/element.h"

#define THREADS 256
#define EACH 4    /* elements of a thread of the longest parameter */
#define MOST 64   /* parameters: their addresses fit in 4 KiB of arguments */
#define WIDE 1024 /* blocks for each parameter, at most */

typedef struct StepBatch {
  void *p[MOST], *s[3][MOST];
  const void *g[MOST], *factor;
  int64_t n[MOST];
} StepBatch;

template <class T> struct NumbersOf { typedef StepNumbers_f32 type; };
template <> struct NumbersOf<double> { typedef StepNumbers_f64 type; };

/* step(RuleOf<rule>(), ...): a step of one element. */
template <StepRule rule> struct RuleOf {};
#define STEP(T, F, rule)                                                       \
  NC_DEVICE void step(RuleOf<STEP_##rule>, T *p, const T *g, T *a, T *b, T *c, \
                      const StepNumbers_##F *k) {                              \
    step_##rule##_##F(p, g, a, b, c, k);                                       \
  }
#define X(rule, least, most) STEP(float, f32, rule) STEP(double, f64, rule)
STEP_RULES(X)
#undef X

/* Element i of the array x of T, or NULL. */
#define AT(x) ((x) ? (T *)(x) + i : NULL)

/* Grid: x covers the elements of a parameter, y the parameters. */
template <class T, StepRule rule>
NC_KERNEL_OF(THREADS)
optimizer_step(const StepBatch b, typename NumbersOf<T>::type k) {
  const int j = blockIdx.y;
  const int64_t stride = (int64_t)gridDim.x * THREADS;
  if (b.factor) k.shrink *= *(const T *)b.factor;
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < b.n[j];
       i += stride)
    step(RuleOf<rule>(), (T *)b.p[j] + i, (const T *)b.g[j] + i, AT(b.s[0][j]),
         AT(b.s[1][j]), AT(b.s[2][j]), &k);
}

template <class T>
static cudaError_t launch(const StepBatch &b, int n, int64_t longest,
                          StepRule rule, const typename NumbersOf<T>::type &k,
                          cudaStream_t stream) {
  const int64_t wide = blocks(longest, THREADS * EACH);
  const dim3 grid((unsigned)(wide < WIDE ? wide : WIDE), (unsigned)n);
  switch (rule) {
#define X(rule, least, most)                                             \
  case STEP_##rule:                                                      \
    return NC_LAUNCH((optimizer_step<T, STEP_##rule>), grid, THREADS, 0, \
                     stream, b, k);
    STEP_RULES(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}

/* Sets the batch of the parameters from `first' on; returns how many.  Those
   without elements are left out. */
static int fill_batch(StepBatch *b, int *first, int64_t *longest,
                      const Device *d, const OptimizerCall *c) {
  int n = 0;
  memset(b, 0, sizeof *b); /* undefined bytes could look like host pointers */
  *longest = 0;
  if (c->factor) b->factor = nc_used(d, c->factor);
  for (; n < MOST && *first < c->n; ++*first) {
    const int64_t elements = nc_numel(c->p[*first]);
    if (elements == 0) continue;
    b->n[n] = elements;
    b->p[n] = nc_used(d, c->p[*first]);
    b->g[n] = c->g ? nc_used(d, c->g[*first]) : b->p[n];
    for (int i = 0; i < c->nstates; i++)
      b->s[i][n] = nc_used(d, c->s[i][*first]);
    if (elements > *longest) *longest = elements;
    n++;
  }
  return n;
}

int nc_cuda_optimizer_step(const Device *d, const OptimizerCall *c) {
  const cudaStream_t stream = nc_current_stream(d);
  int64_t longest;
  StepBatch b;
  int n, next = 0;
  while ((n = fill_batch(&b, &next, &longest, d, c)) > 0) {
    if (c->p[0]->dtype == DT_f32)
      CUDA_TRY(launch<float>(b, n, longest, c->rule,
                             step_numbers_f32(&c->numbers), stream));
    else CUDA_TRY(launch<double>(b, n, longest, c->rule, c->numbers, stream));
  }
  return nc_check_launch(d, "optimizer_step");
}
