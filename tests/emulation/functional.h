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
                     cudaStream_t s);          /* vectors where aligned */
cudaError_t run_sum(float *y, float *part, const float *x, int64_t n,
                    cudaStream_t s);           /* part: 128 floats */
cudaError_t run_softmax(float *y, const float *x, int rows, int columns,
                        cudaStream_t s);
cudaError_t run_philox(uint32_t *y, int64_t n, uint64_t seed, cudaStream_t s);
cudaError_t run_histogram(unsigned *y, const unsigned char *x, int64_t n,
                          cudaStream_t s);     /* of 256 */
cudaError_t run_transpose(float *y, const float *x, int rows, int columns,
                          cudaStream_t s);
cudaError_t run_scan(float *y, const float *x, int n, cudaStream_t s);
cudaError_t run_intrinsics(int *y, cudaStream_t s);   /* y: 65; 32 ones */

#ifdef __cplusplus
}
#endif

#endif
