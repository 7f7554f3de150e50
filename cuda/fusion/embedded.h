/* SPDX-License-Identifier: MIT */
/* embedded.h - the headers of fused kernels, for NVRTC (bindings/embed.cmake
   makes the list); the bytes of a text end in a 0, which `size' leaves out. */
#ifndef cuda_fusion_embedded_h
#define cuda_fusion_embedded_h

#include <stddef.h>

typedef struct Embedded {
  const char *name;
  const unsigned char *text;
  size_t size;
} Embedded;

extern const Embedded nc_kernel_headers[];

#endif
