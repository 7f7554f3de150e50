/* SPDX-License-Identifier: MIT */
/*
** fourier.h - the loops of discrete Fourier transforms (fourier_passes.inc,
** fourier_lines.inc), compiled once for each instruction set.
**
** Lines are transformed side by side, as the lanes of vectors: element i of
** `lanes' lines is a vector of real parts and one of imaginary parts, a pair.
** Short lines are lanes themselves.  A long line of n1*n2 elements is a matrix
** whose columns are lanes; its transform is that of the columns, a product with
** roots of 1, and the transform of the rows (Bailey's four steps, 1990).
*/
#ifndef core_cpu_kernels_fourier_h
#define core_cpu_kernels_fourier_h

#include <stdint.h>

/* The largest factor that a transform by passes may have.  Those without a
   loop of their own take time in proportion to the factor. */
#define NC_FOURIER_FACTOR 31
#define NC_FOURIER_PASSES 32

/* A transform of n elements in passes (Stockham's algorithm, which puts the
   results in order as it goes): n = factor[0] * factor[1] * ... */
typedef struct FourierPasses {
  int64_t n;
  int count, factor[NC_FOURIER_PASSES];
  /* w[q-1][k-1] = root q*k of n's, for each group q > 0 and element k > 0 of a
     pass; real and imaginary part */
  const void *twiddle[NC_FOURIER_PASSES];
  /* the roots of a factor that has no loop of its own */
  const void *root[NC_FOURIER_PASSES];
} FourierPasses;

/* Roots j*k of n's for row k and column j of the matrix are within_block[k] (a
   pair: for the columns of the first block of lanes) times
   of_block[block][k]. */
typedef struct FourierSplit {
  int64_t n1, n2;
  FourierPasses columns, rows;
  const void *within_block, *of_block;
} FourierSplit;

/* Numbers in memory: element i of line l has its real part at i*step + l*apart,
   and its imaginary part `gap' behind that.  With a gap of 0 elements are
   real.  With `swap' the parts change places, which makes of a transform the
   inverse one if it is done on both sides. */
typedef struct FourierLayout {
  int64_t step, apart, gap;
  int swap;
} FourierLayout;

typedef struct FourierKernels {
  int64_t lanes;
  /* n elements of up to `lanes' lines to pairs, and back, times scale */
  void (*gather)(void *pairs, const void *x, const FourierLayout *l, int64_t n,
                 int64_t lines);
  void (*spread)(void *y, const FourierLayout *l, const void *pairs, int64_t n,
                 int64_t lines, double scale);
  /* Transforms p->n pairs; the result is in `pairs' or in `other'. */
  void *(*transform)(const FourierPasses *p, void *pairs, void *other);
  /* For lanes of 2*h real numbers, taken for h complex ones: of their transform
     makes the h+1 elements of the numbers' own; and the reverse, whose result
     has its parts swapped.  w has the roots 0 .. h/2 of 2*h. */
  void (*unpack)(void *pairs, const void *w, int64_t h);
  void (*pack)(void *pairs, const void *w, int64_t h);
  /* The same for one line of complex numbers in memory, `step' numbers apart in
     y and x; z is dense. */
  void (*unpack_line)(void *y, int64_t step, const void *w, int64_t h);
  void (*pack_line)(void *z, const void *x, int64_t step, const void *w,
                    int64_t h);
  /* A line in two steps, each block of which may run in a thread of its own:
     block i of the columns of x, to `turned', which has a row of n2 pairs for
     each block of rows; block i of the rows, to y.  `work' has 2*n1 pairs or n2
     pairs. */
  void (*columns)(const FourierSplit *s, const void *x, const FourierLayout *l,
                  void *turned, int64_t i, void *work);
  void (*rows)(const FourierSplit *s, void *turned, void *y,
               const FourierLayout *l, double scale, int64_t i, void *work);
} FourierKernels;

#endif
