/* SPDX-License-Identifier: MIT */
/*
** levers.h - what levers.c asks of the kernels in levers.cu.
*/
#ifndef levers_h
#define levers_h

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* order[i] becomes the place of thread i in the order that they ran in. */
cudaError_t run_order(unsigned *order, unsigned *counter, int blocks,
                      int threads, cudaStream_t s);
cudaError_t run_increment(int *x, const int *by, cudaStream_t s);

#ifdef __cplusplus
}
#endif

#endif
