/* SPDX-License-Identifier: MIT */
/* fourier_plan.h - how lines of one length are transformed, and the tables. */
#ifndef core_cpu_fourier_fourier_plan_h
#define core_cpu_fourier_fourier_plan_h

#include "core/cpu/kernels/fourier.h"
#include "core/tensor.h"

/* One of three: whole.count > 0, passes over lanes; split.n1 > 0, a matrix
   (both may be there); chirped, by a product with a chirp (Bluestein, 1970),
   which makes of it a convolution, in float64, of lines that are longer. */
typedef struct FourierPlan {
  int64_t n;
  DType type;
  int real;                   /* is half_roots there? */
  FourierPasses whole;
  FourierSplit split;
  struct FourierPlan *chirped;
  const double *chirp;        /* roots j*j of 2*n, j < n */
  const double *filter;       /* their conjugates' transform, over its n */
  const void *half_roots;     /* roots 0 .. n/2 of 2*n */
  struct FourierTable *tables;
  int64_t bytes;
  struct FourierPlan *next;
} FourierPlan;

/* The loops for float32 or float64. */
const FourierKernels *nc_fourier_kernels(DType type);

/* The plan for lines of n >= 1 elements, which is kept for the next call; with
   `real', also for lines of 2*n real numbers.  It is good until
   nc_fourier_forget. */
int nc_fourier_plan(const FourierPlan **p, int64_t n, DType type, int real);

/* Frees the plans that were not used last, down to what is worth keeping. */
void nc_fourier_forget(void);

/* Transforms p->n elements of one line, which begin at x and y, on this thread,
   with `work' of nc_fourier_work bytes; or on all threads.  y may be x if they
   are dense, or apart from it. */
int64_t nc_fourier_work(const FourierPlan *p);
void nc_fourier_line(const FourierPlan *p, const void *x,
                     const FourierLayout *xl, void *y, const FourierLayout *yl,
                     double scale, void *work);
int nc_fourier_long_line(const FourierPlan *p, const void *x,
                         const FourierLayout *xl, void *y,
                         const FourierLayout *yl, double scale);

#endif
