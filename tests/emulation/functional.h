/* SPDX-License-Identifier: MIT */
/*
** functional.h - what functional.c asks of the kernels in functional.cu.  All
** of it holds on a real device, too.
*/
#ifndef functional_h
#define functional_h

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t run_axpb(float *y, const float *x, float a, float b, int64_t n,
                     cudaStream_t s);
cudaError_t run_intrinsics(int *y, cudaStream_t s); /* y: 32 ones */

#ifdef __cplusplus
}
#endif

#endif
