/* SPDX-License-Identifier: MIT */
/*
** emulation_settings.h - what emulation_settings.c asks of the kernels in
** emulation_settings.cu.
*/
#ifndef emulation_settings_h
#define emulation_settings_h

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* order[i] becomes the place of thread i in the order that they ran in. */
cudaError_t run_order(unsigned *order, unsigned *counter, int blocks,
                      int threads, cudaStream_t s);
cudaError_t run_increment(int *x, const int *by, cudaStream_t s);
/* single[f * n + i] = f(x[i]), or f(x[i], 1.5), for function f of maths.def;
   and wide the same in double. */
cudaError_t run_maths(float *single, double *wide, const double *x, int n,
                      cudaStream_t s);
/* One of them in double, by the host, and with more digits. */
double by_host(int f, double x);
long double by_far(int f, long double x);

#ifdef __cplusplus
}
#endif

#endif
