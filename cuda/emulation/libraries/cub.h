/* SPDX-License-Identifier: MIT */
/*
** cub.h - the functions of cub.c, for the emulated headers of CUB in
** include/cub.  They follow CUB's convention: if `temp' is NULL, a call only
** sets *bytes to the size of the temporary storage; otherwise it queues the
** work in the stream.
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
  void *key[2], *value[2];    /* input, second buffer; value: or NULL */
  size_t n;
  int keysize, valuesize;     /* in bytes */
  int begin, end;             /* the bits of a key to sort by */
} EmuSort;

typedef struct EmuScan {
  const uint64_t *x;
  uint64_t *y;
  size_t n;
} EmuScan;

/* The number of passes; each moves the data to the other buffer. */
int emu_sortpasses(const EmuSort *s);
cudaError_t emu_sort(const EmuSort *s, void *temp, size_t *bytes,
                     cudaStream_t stream);
cudaError_t emu_scan(const EmuScan *s, void *temp, size_t *bytes,
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
