/* SPDX-License-Identifier: MIT */
/*
** cufft_library.h - cuFFT, opened when the first transform needs it.  Only
** fourier.c uses it.
*/
#ifndef cuda_fourier_cufft_library_h
#define cuda_fourier_cufft_library_h

#include "cuda/cuda.h"

/* `batch' transforms of lines of n, without a factor.  An element of a line is
   `step' after the one before, the next line begins `line' elements later: of
   x, y. */
typedef struct FftLines {
  FourierKind kind;
  int inverse, wide;          /* of FOURIER_COMPLEX; is it double precision? */
  int64_t n, batch;
  int64_t step[2], line[2];
} FftLines;

/* On the current stream of d, once for each i below `times' with x and y moved
   on by i*by[0] and i*by[1] bytes.  *done = 0: cuFFT is not there, or failed
   before it wrote. */
int nc_cufft(const Device *d, const FftLines *l, const void *x, void *y,
             int64_t times, const int64_t by[2], int *done);

/* "cuFFT 12.0.0 (path)", or the reason why cuFFT is not available. */
const char *nc_cufft_info(void);
void nc_cufft_close(void);    /* destroys all plans */

#endif
