/* SPDX-License-Identifier: MIT */
/*
** cub.h - what the emulated headers of CUB (include/cub) ask of cub.c.  Each
** call has the frame of CUB's own: without memory at `temp' it only says in
** *bytes how much it needs there; else it puts the work in the stream.
*/
#ifndef cuda_emulation_cub_h
#define cuda_emulation_cub_h

#include <stddef.h>
#include <stdint.h>

#include "cuda/emulation/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct EmuSort {
  void *key[2], *value[2];    /* what is, and room; values may be NULL */
  size_t n;
  int keysize, valuesize;     /* in bytes */
  int begin, end;             /* of the bits of a key that count */
} EmuSort;

typedef struct EmuScan {
  const uint64_t *x;
  uint64_t *y;
  size_t n;
} EmuScan;

/* How often the sort moves everything to the other buffer. */
int emu_sortpasses(const EmuSort *s);
cudaError_t emu_sort(const EmuSort *s, void *temp, size_t *bytes,
                     cudaStream_t stream);
cudaError_t emu_scan(const EmuScan *s, void *temp, size_t *bytes,
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
