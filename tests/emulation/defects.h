/* SPDX-License-Identifier: MIT */
/*
** defects.h - seeded defects and delicate correct code, for defects.c to run,
** each in a process of its own.
*/
#ifndef defects_h
#define defects_h

#include "cuda/device.h"

/* A defect says what each flavour of the emulation must say of it:
**   "..."            a report that contains this
**   "api cudaError"  a call fails with this error
**   WRONG            no report, but a wrong result in one of the modes
**   MISSED           nothing
**   NULL             it is no defect: all is right in every mode */
#define WRONG   "wrong"
#define MISSED  "missed"

typedef struct Defect {
  const char *name;
  int (*run)(void);          /* is the result right? */
  const char *check, *asan;
} Defect;

#ifdef __cplusplus
extern "C" {
#endif

extern const Defect memory_defects[], race_defects[], stream_defects[],
    cub_defects[], controls[];              /* each ends with a name of NULL */

/* What a defect works on: x holds 0, 1, 2 ... as h does; y nothing yet. */
#define N 1000
extern float *x, *y, *h, *g;           /* two on the device, two page-locked */
extern cudaStream_t s, other;

void must(cudaError_t e);              /* ends the process if it failed */
float *device(size_t n);               /* n floats on the current device */
void up(float *to, const float *from, size_t n, cudaStream_t stream);
void down(float *to, const float *from, size_t n, cudaStream_t stream);
void clear(float *p, size_t n);        /* on the host, by memset */
void fetch(size_t n);                  /* of y, into g; waits */

#ifdef __cplusplus
}
#endif

#define LAUNCH(...)  must(NC_LAUNCH(__VA_ARGS__))

#ifdef __cplusplus
template <class T> NC_KERNEL fill(T *to, T value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value;
}

template <class T> NC_KERNEL copy(T *to, const T *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
#endif

#endif
